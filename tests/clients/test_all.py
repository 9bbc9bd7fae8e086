"""What all clients have in common: the shared cases, the real API, and a webhook that the product signed."""

import pytest

from tests.clients.programs import find_program, make_runner
from tests.clients.real_api import RealApi, check_real_api, check_signed_webhook
from tests.clients.shared_cases import CLIENTS, Runner, SharedCases
from tests.clients.test_python import run_operations

RUNNERS = {
    "node": ("Node", CLIENTS / "node" / "test" / "runner.mjs"),
    "php": ("PHP", CLIENTS / "php" / "tests" / "runner.php"),
}


@pytest.fixture(params=["python", *RUNNERS])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(language: str) -> Runner:
    if language == "python":
        return run_operations
    name, script = RUNNERS[language]
    return make_runner(find_program(name), script)


@pytest.mark.parametrize("part", ["signatures", "arguments", "intents", "errors", "retries"])
def test_shared_cases(language: str, run: Runner, subtests: pytest.Subtests, part: str) -> None:
    getattr(SharedCases(language, run, subtests), f"check_{part}")()


def test_real_api(real_api: RealApi, run: Runner) -> None:
    check_real_api(real_api, run)


def test_signed_webhook(run: Runner) -> None:
    check_signed_webhook(run)
