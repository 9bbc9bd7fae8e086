"""The versions of Docker Compose that can be had here; the compose file has to please both."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.compose.go_programs import COMPOSE
from tests.compose.surroundings import ProgramFailedError, run

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Compose:
    command: tuple[str, ...]
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def find_composes(cache: Path) -> list[Compose]:
    """The best first: the second version as a plugin, or by itself, or built from its module; then the first."""
    found = [
        compose for command in (("docker", "compose"), ("docker-compose",)) if (compose := _look(command))
    ]
    if not any(compose.major >= 2 for compose in found) and shutil.which("go"):
        built = _look((str(COMPOSE.ensure(cache)),))
        assert built is not None
        found.append(built)
    return sorted(found, key=lambda compose: compose.major, reverse=True)


def _look(command: tuple[str, ...]) -> Compose | None:
    try:
        told = _VERSION.search(run(*command, "version", "--short"))
    except ProgramFailedError:
        return None
    return Compose(command, ".".join(told.groups())) if told else None
