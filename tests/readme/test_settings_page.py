"""docs/settings.md names every setting that is read, and no other."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.platform.settings import read_admin_url, read_settings
from stack.options import read_options
from tests.readme.documents import ROOT, Document

_NAME = re.compile(r"`([A-Z][A-Z0-9_]+)`")
_OF_THE_SYSTEM = {"HOME", "XDG_CACHE_HOME"}
_ONLY_ON_A_TERMINAL = {"NO_COLOR"}


class Watched(dict[str, str]):
    """An environment that remembers which variables were read."""

    asked: set[str]

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        self.asked.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Watched]:
    made = Watched(DATABASE_URL="postgresql://m:m@127.0.0.1/m", KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:9092")
    made["HOME"] = str(tmp_path)
    made.asked = set()
    monkeypatch.setattr(os, "environ", made)
    yield made
    monkeypatch.undo()


def test_settings_page_names_exactly_the_settings_that_are_read(watched: Watched) -> None:
    watched.asked.clear()  # forget what pytest and its plugins have read
    read_settings()
    read_admin_url(optional=True)
    read_options()
    names = (watched.asked | _ONLY_ON_A_TERMINAL) - _OF_THE_SYSTEM
    files = {name for name in names if name.endswith("_FILE") and name.removesuffix("_FILE") in names}
    told = {name for row in Document(ROOT / "docs" / "settings.md").rows() for name in _NAME.findall(row[0])}
    assert told == names - files
