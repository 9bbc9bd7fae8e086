"""Programs that are built from their Go modules once and kept in the cache: Caddy, and Docker Compose."""

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.compose.surroundings import run


@dataclass(frozen=True, slots=True)
class GoProgram:
    name: str
    module: str
    version: str
    package: str
    flags: str = "-s -w"

    def ensure(self, cache: Path) -> Path:
        """The program, static, in `cache`."""
        program = cache / f"{self.name}-{self.version}"
        if not program.exists():
            cache.mkdir(parents=True, exist_ok=True)
            self._build(program)
        return program

    def _build(self, program: Path) -> None:
        told = run("go", "mod", "download", "-json", f"{self.module}@{self.version}")
        # In a copy, because a module in Go's own cache is read-only, and `go install` refuses one with replacements.
        with tempfile.TemporaryDirectory(prefix="mizan-go-") as name:
            source = Path(name) / "source"
            shutil.copytree(json.loads(told)["Dir"], source)
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
