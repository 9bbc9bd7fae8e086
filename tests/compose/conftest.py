"""Projects for the tests of the compose files, which only `make test-compose` runs: they need a Docker daemon."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.composes import Compose
from tests.compose.projects import Projects

OPTION = "--composes"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION, help="a file that lists the versions of Docker Compose, written by make test-compose"
    )


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Only `make test-compose` has the option: any other run neither collects nor shows these tests."""
    return True if config.getoption(OPTION, None) is None else None


@pytest.fixture(scope="session")
def composes(request: pytest.FixtureRequest) -> list[Compose]:
    """The newest first."""
    file = request.config.getoption(OPTION, None)
    if file is None:
        pytest.skip("needs a Docker daemon and images: make test-compose")
    return [
        Compose(tuple(compose["command"]), compose["version"])
        for compose in json.loads(Path(file).read_text())
    ]


@pytest.fixture(scope="module")
def projects(composes: list[Compose]) -> Iterator[Projects]:
    """What is brought up with it is gone after the last test of the module."""
    made = Projects(composes[0])
    try:
        yield made
    finally:
        made.destroy()
