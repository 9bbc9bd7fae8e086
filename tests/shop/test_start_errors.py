"""Errors when the shop starts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from examples.shop.__main__ import main


def test_database_of_another_version_is_refused_and_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table payments (reference text primary key, ask_at real)")
    before = path.read_bytes()
    monkeypatch.setenv("SHOP_DATABASE", str(path))
    monkeypatch.setenv("SHOP_CREDENTIALS_FILE", str(tmp_path / "credentials.json"))
    with pytest.raises(SystemExit, match=r"the shop cannot start: .*shop\.sqlite is of another version"):
        main()
    assert path.read_bytes() == before
