"""Turns the database's clock by hand, by replacing mizan_now() in a test's own database."""

from datetime import datetime, timedelta

from psycopg import sql

from shared.db.pool import Database


class Clock:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._offset = timedelta()

    def now(self) -> datetime:
        with self._database.transaction() as connection:
            row = connection.execute("select mizan_now()").fetchone()
        assert row is not None
        now = row[0]
        assert isinstance(now, datetime)
        return now

    def advance(self, by: timedelta) -> None:
        self._offset += by
        with self._database.transaction() as connection:
            connection.execute(
                sql.SQL(
                    """create or replace function mizan_now() returns timestamptz
                       language sql stable parallel safe
                       return statement_timestamp() + make_interval(secs => {})"""
                ).format(sql.Literal(self._offset.total_seconds()))
            )
