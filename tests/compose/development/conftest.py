"""One project for all tests of the development file, because it takes a minute to start."""

from collections.abc import Iterator

import pytest

from tests.compose.compose_versions import Compose
from tests.compose.installation import Installation
from tests.compose.project import Project, Projects


@pytest.fixture(scope="package")
def project(composes: list[Compose]) -> Iterator[Project]:
    projects = Projects(composes[0])
    try:
        made = projects.make()
        made.up()
        yield made
    finally:
        projects.destroy()


@pytest.fixture(scope="package")
def mizan(project: Project) -> Installation:
    return Installation(project)
