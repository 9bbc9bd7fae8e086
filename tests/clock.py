"""Turns the database's clock by hand, by replacing mizan_now() in a test's own database."""

from datetime import datetime, timedelta

from psycopg import sql

from shared.platform.database.pool import Database


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
        """It goes on from there."""
        self._offset += by
        self._replace(
            sql.SQL("statement_timestamp() + make_interval(secs => {})").format(
                sql.Literal(self._offset.total_seconds())
            )
        )

    def stop_at(self, moment: datetime) -> None:
        """It stands still there, so that an instant can be looked at from both sides."""
        self._replace(sql.SQL("timestamptz {}").format(sql.Literal(moment.isoformat())))

    def _replace(self, body: sql.Composed) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                sql.SQL(
                    """create or replace function mizan_now() returns timestamptz
                       language sql stable parallel safe return {}"""
                ).format(body)
            )
