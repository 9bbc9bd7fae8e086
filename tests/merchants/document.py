"""The example shops of the guides: files to copy, commands to run, and the test signature."""

import re
from dataclasses import dataclass
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs"
_COMMANDS = re.compile(r"^\| (\w+) \| `([^`]*shop[^`]*)` \| `([^`]*recheck)` \|$", re.MULTILINE)
_VECTOR = re.compile(r"^secret +(\S+)\nbody +(\S+)\nsignature +(\S+)$", re.MULTILINE)

FILES = {path.name: path for path in (_DOCS / "examples").iterdir()}
"""The guides include them."""


@dataclass(frozen=True, slots=True)
class Commands:
    serve: str
    recheck: str


COMMANDS = {
    language: Commands(serve, recheck)
    for language, serve, recheck in _COMMANDS.findall((_DOCS / "guides" / "shop.md").read_text())
}


@dataclass(frozen=True, slots=True)
class Vector:
    secret: str
    body: bytes
    signature: str


def vector() -> Vector:
    (found,) = _VECTOR.findall((_DOCS / "guides" / "webhooks.md").read_text())
    return Vector(found[0], found[1].encode(), found[2])


def copy_files(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).write_text(FILES[name].read_text())
