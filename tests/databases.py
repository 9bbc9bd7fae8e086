"""Databases for tests, copied from a migrated one. Copying takes a while, so the next is made while a test runs."""

from concurrent.futures import Future, ThreadPoolExecutor
from uuid import uuid4

import psycopg
from psycopg.conninfo import conninfo_to_dict

from shared.db.migrate import migrate


class Databases:
    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._template = f"mizan_template_{uuid4().hex[:8]}"
        self._ahead = ThreadPoolExecutor(1, "next-database")
        self._next: Future[str] | None = None
        self._administrate(f'create database "{self._template}"')
        migrate(self.url(self._template))

    def take(self) -> str:
        """The name of a new one."""
        made = self._next
        try:
            name = made.result() if made else self._copy()
        except psycopg.Error:  # the last test has killed the server at that moment
            name = self._copy()
        self._next = self._ahead.submit(self._copy)
        return name

    def drop(self, name: str) -> None:
        self._administrate(f'drop database if exists "{name}" with (force)')

    def close(self) -> None:
        self._ahead.shutdown()
        if self._next and not self._next.exception():
            self.drop(self._next.result())
        self.drop(self._template)

    def url(self, name: str) -> str:
        parts = conninfo_to_dict(self._server_url)
        password = f":{parts['password']}" if parts.get("password") else ""
        return f"postgresql://{parts['user']}{password}@{parts['host']}:{parts['port']}/{name}"

    def _copy(self) -> str:
        name = f"mizan_{uuid4().hex[:12]}"
        self._administrate(f'create database "{name}" template "{self._template}"')
        return name

    def _administrate(self, statement: str) -> None:
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(statement.encode())
