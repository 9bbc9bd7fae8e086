"""The versions of Docker Compose to test with, and programs built from Go modules: Docker Compose and Caddy."""

import json
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.compose.programs import ProgramFailedError, run


@dataclass(frozen=True, slots=True)
class GoProgram:
    name: str
    module: str
    version: str
    package: str
    flags: str = "-s -w"

    def ensure(self, cache: Path) -> Path:
        """Return the path of the program in `cache`. It is built there if it is missing."""
        program = cache / f"{self.name}-{self.version}"
        if not program.exists():
            cache.mkdir(parents=True, exist_ok=True)
            self._build(program)
        return program

    def _build(self, program: Path) -> None:
        output = run("go", "mod", "download", "-json", f"{self.module}@{self.version}")
        # Build a copy: Go's module cache is read-only, and `go install` refuses modules with replacements.
        with tempfile.TemporaryDirectory(prefix="mizan-go-") as name:
            source = Path(name) / "source"
            shutil.copytree(json.loads(output)["Dir"], source)
            run("chmod", "-R", "u+w", source)
            unfinished = program.with_suffix(".new")
            run(
                "go", "build", "-trimpath", f"-ldflags={self.flags}", "-o", unfinished, self.package,
                cwd=source, env={"CGO_ENABLED": "0"}, within=1200,
            )  # fmt: skip
            unfinished.rename(program)


CADDY = GoProgram("caddy", "github.com/caddyserver/caddy/v2", "v2.10.2", "./cmd/caddy")
COMPOSE = GoProgram(
    "docker-compose",
    "github.com/docker/compose/v2",
    "v2.40.3",
    "./cmd",
    "-s -w -X github.com/docker/compose/v2/internal.Version=v2.40.3",
)


_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Compose:
    command: tuple[str, ...]
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def find_composes(cache: Path) -> list[Compose]:
    """Return what is installed, newest first. If there is no version 2, build it with Go if possible."""
    found = [
        compose for command in (("docker", "compose"), ("docker-compose",)) if (compose := _detect(command))
    ]
    if not any(compose.major >= 2 for compose in found) and shutil.which("go"):
        built = _detect((str(COMPOSE.ensure(cache)),))
        assert built is not None
        found.append(built)
    return sorted(found, key=lambda compose: compose.major, reverse=True)


def _detect(command: tuple[str, ...]) -> Compose | None:
    try:
        match = _VERSION.search(run(*command, "version", "--short"))
    except ProgramFailedError:
        return None
    return Compose(command, ".".join(match.groups())) if match else None
