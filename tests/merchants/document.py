"""Reads docs/merchants.md: files to copy, commands to run, and the test signature."""

import re
from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "merchants.md"
_TEXT = DOCUMENT.read_text()
_BLOCK = re.compile(
    r"^```\w+\n(?P<code>(?:#|//|<\?php //) (?P<file>[\w.]+)\n.*?)^```$", re.MULTILINE | re.DOTALL
)
_COMMANDS = re.compile(r"^\| (\w+) \| `([^`]*shop[^`]*)` \| `([^`]*recheck)` \|$", re.MULTILINE)
_VECTOR = re.compile(r"^secret +(\S+)\nbody +(\S+)\nsignature +(\S+)$", re.MULTILINE)

FILES = {found["file"]: found["code"] for found in _BLOCK.finditer(_TEXT)}
"""The code blocks that start with the name of a file."""


@dataclass(frozen=True, slots=True)
class Commands:
    serve: str
    recheck: str


COMMANDS = {language: Commands(serve, recheck) for language, serve, recheck in _COMMANDS.findall(_TEXT)}


@dataclass(frozen=True, slots=True)
class Vector:
    secret: str
    body: bytes
    signature: str


def vector() -> Vector:
    (found,) = _VECTOR.findall(_TEXT)
    return Vector(found[0], found[1].encode(), found[2])


def copy_files(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).write_text(FILES[name])
