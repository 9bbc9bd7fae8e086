"""Fixtures for the tests of the compose files. Only `make test-compose` runs them: they need a Docker daemon."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.compose_versions import Compose
from tests.compose.project import Projects

OPTION = "--composes"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION, help="a file that lists the versions of Docker Compose, written by make test-compose"
    )


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Hide these tests without the option, which only `make test-compose` gives."""
    return True if config.getoption(OPTION, None) is None else None


@pytest.fixture(scope="session")
def composes(request: pytest.FixtureRequest) -> list[Compose]:
    """The versions of Docker Compose, newest first."""
    file = request.config.getoption(OPTION, None)
    if file is None:
        pytest.skip("needs a Docker daemon and images: make test-compose")
    return [
        Compose(tuple(compose["command"]), compose["version"])
        for compose in json.loads(Path(file).read_text())
    ]


@pytest.fixture(scope="module")
def projects(composes: list[Compose]) -> Iterator[Projects]:
    """Create projects that are destroyed after the last test of the module."""
    made = Projects(composes[0])
    try:
        yield made
    finally:
        made.destroy()
