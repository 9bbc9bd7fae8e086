"""Makes projects, each with a name of its own, and makes sure that nothing of them is left."""

from dataclasses import dataclass, field
from uuid import uuid4

from tests.compose.composes import Compose
from tests.compose.leftovers import PREFIX
from tests.compose.project import Project


@dataclass(slots=True)
class Projects:
    compose: Compose
    _made: list[Project] = field(default_factory=list)

    def make(
        self,
        *,
        compose: Compose | None = None,
        files: tuple[str, ...] = ("docker-compose.yml",),
        env_file: str | None = None,
        **settings: str,
    ) -> Project:
        name = f"{PREFIX}{uuid4().hex[:8]}"
        project = Project(compose or self.compose, name, settings, files, env_file)
        self._made.append(project)
        return project

    def destroy(self) -> None:
        while self._made:
            self._made.pop().destroy()
