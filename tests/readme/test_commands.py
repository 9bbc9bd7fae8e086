"""Every command of the README, the quickstart and the operators' pages works, in order, on one running stack."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.platform.settings import DatabaseSettings, KafkaSettings
from tests.engines import TestEngines
from tests.readme.documents import README, ROOT, Document, commands
from tests.readme.placeholders import Placeholders
from tests.stack.running_stack import PROJECT, RunningStack, whole_stack

_SKIPPED = re.compile(r"make run|make test|docker[ -]compose ")
"""Not run here: this is `make test` itself, its stack replaces `make run`, and containers have their own tests."""
_RUN_ELSEWHERE = {
    "app set-provider": "tests/mizan/test_provider.py",
    "attempt decide": "tests/mizan/test_attempt.py",
    "attempt handled": "tests/mizan/test_attempt.py",
    "listen": "tests/mizan/test_listen.py",
    "trigger payment_intent.canceled": "tests/mizan/test_trigger.py",
    "trigger payment_intent.late": "tests/mizan/test_trigger.py",
    "roles": "tests/shared/platform/database/test_roles.py",
    "topics --passwords": "tests/mizan/test_topics_access.py",
    "dead show": "tests/mizan/test_dead.py",
    "dead replay ID": "tests/mizan/test_dead.py",
    "dead dismiss": "tests/mizan/test_dead.py",
}
"""Commands that ask for passwords, take minutes, or need what a healthy stack has not: their own tests run them."""
QUICKSTART = Document(ROOT / "docs" / "quickstart.md")
OPERATORS_PAGES = [
    Document(ROOT / "docs" / name)
    for name in ("cli.md", "operations/topics.md", "operations/dead-letters.md", "security.md")
]
_PORT = re.compile(r"127\.0\.0\.1:80(\d\d)")


@pytest.fixture
def stack(
    tmp_path: Path, engines: TestEngines, database_settings: DatabaseSettings, kafka_settings: KafkaSettings
) -> Iterator[RunningStack]:
    places = engines, database_settings.url, kafka_settings.topic_prefix
    with whole_stack(tmp_path / "stack", *places) as running:
        yield running


@pytest.mark.stack
@pytest.mark.timeout(240)
def test_every_command_of_the_readme_works(stack: RunningStack, kafka_settings: KafkaSettings) -> None:
    """As written, except for the ports and the directory of the test."""
    blocks = ["\n".join(_to_run(block)) for block in README.code("sh")]
    whole = "\n".join(_run(block, stack, kafka_settings) for block in blocks)
    answer, _ = json.JSONDecoder().raw_decode(whole, whole.index('{"data":'))
    assert (answer["data"]["amount"], answer["data"]["status"]) == (25_000, "requires_payment_method")
    for text in ("Demo shop", "mizan_outbox", "webhooks.deliver", "api.log"):
        assert text in whole


@pytest.mark.stack
@pytest.mark.timeout(240)
def test_every_command_of_the_quickstart_works(stack: RunningStack, kafka_settings: KafkaSettings) -> None:
    """In one shell. `listen`, which has a terminal of its own there, is ended when it has printed the webhook."""
    script = "\n".join(line for block in QUICKSTART.code("sh") for line in _to_run(block))
    in_background = f"\\1 >.run/listened 2>&1 & trap 'kill $!' EXIT; {_until('listening')}"
    script, listens = re.subn(r"^(bin/mizan listen .*)$", in_background, script, flags=re.MULTILINE)
    assert listens == 1
    script = script.replace("intent.json", ".run/intent.json")
    webhook = f"{_until('payment_intent.succeeded')}; cat .run/listened"
    printed = _run(f"{script}\n{webhook}", stack, kafka_settings)
    assert '"status":"succeeded"' in printed
    assert "payment_intent.succeeded" in printed


@pytest.mark.stack
@pytest.mark.timeout(400)
def test_every_command_of_the_operators_pages_works(
    stack: RunningStack, kafka_settings: KafkaSettings
) -> None:
    """With real ids in the place of `APP`, `INTENT` and the like."""
    placeholders = Placeholders(stack)
    lines = [line for page in OPERATORS_PAGES for block in page.code("sh") for line in _to_run(block)]
    called = [
        line for line in lines if not line.startswith(tuple(f"bin/mizan {call}" for call in _RUN_ELSEWHERE))
    ]
    assert len(called) > 45
    for line in sorted(called, key=lambda line: "remove-demo" in line):
        _run(placeholders.fill_in(line), stack, kafka_settings)


@pytest.mark.stack
@pytest.mark.timeout(240)
def test_ledger_of_the_sandbox_is_read_as_its_page_says(
    stack: RunningStack, kafka_settings: KafkaSettings
) -> None:
    placeholders = Placeholders(stack)
    (script,) = Document(ROOT / "docs" / "sandbox.md").code("sh")
    printed = _run(f"UUID={placeholders.paid_intent}\n{script}", stack, kafka_settings)
    assert json.loads(printed)["charges"][0]["status"] == "paid"


def test_commands_that_are_run_elsewhere_are_commands_of_the_pages() -> None:
    text = "\n".join(page.text for page in OPERATORS_PAGES)
    for call, test in _RUN_ELSEWHERE.items():
        assert f"bin/mizan {call}" in text
        assert (ROOT / test).exists()


def _until(text: str) -> str:
    """Return a command that waits until `mizan listen` has printed the text, and prints all of it if it does not."""
    waiting = f"until grep -q {text} .run/listened; do sleep 0.2; done"
    return f"timeout 60 sh -c '{waiting}' || {{ cat .run/listened; exit 1; }}"


def test_make_run_starts_the_stack() -> None:
    assert "exec .venv/bin/python -m stack" in _make("-n", "run").splitlines()


def test_every_make_target_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"`make ([a-z-]+)", README.text))
    rows = [re.fullmatch(r"  make ([a-z-]+) +(\S.*)", line) for line in _make("help").splitlines()]
    assert all(rows)
    assert len({row.start(2) for row in rows if row}) == 1, "the explanations are not aligned"
    assert named <= {row[1] for row in rows if row}


def _make(*arguments: str) -> str:
    """Run make with a clean environment: inside of `make test` it would print its directory."""
    return subprocess.run(
        ["make", *arguments],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"]},  # noqa: TID251  the shell needs it
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _to_run(block: str) -> list[str]:
    return [command for command in commands(block) if not _SKIPPED.match(command)]


def _run(script: str, stack: RunningStack, kafka_settings: KafkaSettings) -> str:
    here = _PORT.sub(lambda port: f"127.0.0.1:{stack.port_base + int(port[1])}", script)
    here = here.replace(".run/", f"{stack.directory}/")
    inherited = {"PATH": os.environ["PATH"]}  # noqa: TID251  the shell needs it
    done = subprocess.run(
        ["sh", "-euc", here],
        cwd=PROJECT,
        env={
            **inherited,
            "STACK_DIR": str(stack.directory),
            "KAFKA_TOPIC_PREFIX": kafka_settings.topic_prefix,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{here}\n{done.stdout}\n{done.stderr}"
    return done.stdout
