"""Sets the database's clock, by replacing mizan_now() in the database of a test."""

from datetime import datetime, timedelta

from psycopg import sql

from shared.platform.database.pool import Database


class Clock:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._offset = timedelta()
        self._stopped_at: datetime | None = None

    def now(self) -> datetime:
        with self._database.transaction() as connection:
            row = connection.execute("select mizan_now()").fetchone()
        assert row is not None
        now = row[0]
        assert isinstance(now, datetime)
        return now

    def advance(self, by: timedelta) -> None:
        """Move the clock forward. A running clock keeps running, a stopped one stays stopped."""
        if self._stopped_at is not None:
            self.stop_at(self._stopped_at + by)
            return
        self._offset += by
        self._replace(
            sql.SQL("statement_timestamp() + make_interval(secs => {})").format(
                sql.Literal(self._offset.total_seconds())
            )
        )

    def stop_at(self, moment: datetime) -> None:
        """Stop the clock at `moment`, so that a test can check both sides of a limit exactly."""
        self._stopped_at = moment
        self._replace(sql.SQL("timestamptz {}").format(sql.Literal(moment.isoformat())))

    def _replace(self, body: sql.Composed) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                sql.SQL(
                    """create or replace function mizan_now() returns timestamptz
                       language sql stable parallel safe return {}"""
                ).format(body)
            )
