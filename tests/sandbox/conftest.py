"""One sandbox, shared by all tests that neither kill it nor read everything it has written."""

from collections.abc import Iterator

import pytest

from tests.sandbox.running_sandbox import RunningSandbox


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSandbox]:
    made = RunningSandbox(tmp_path_factory.mktemp("sandbox"))
    with made.running():
        yield made
