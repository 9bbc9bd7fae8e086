"""In production each process starts with exactly the keys of its purposes."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.fernet import Fernet

from mizan.__main__ import main
from shared.platform.keys import COMMAND_LINE, PROCESS_PURPOSES, STORED_PURPOSES
from shared.platform.production.key_rules import find_key_problems
from shared.platform.production.settings_rules import find_command_problems, find_setting_problems
from shared.platform.settings import (
    FALLBACK_VARIABLE,
    KEY_VARIABLES,
    Environment,
    KeyPurpose,
    Settings,
    TransitSettings,
    read_environment,
)

MODULES = ["api", "checkout", "checkout.verification", "dashboard", "monitor", "scheduler", "webhooks"]
PROCESSES = sorted(PROCESS_PURPOSES)
EVERY_KEY = {purpose: (Fernet.generate_key().decode(),) for purpose in KeyPurpose}


@pytest.fixture
def production(good: pytest.MonkeyPatch) -> Settings:
    good.delenv("MIZAN_WEBHOOK_SECRET_KEYS")
    return read_environment().settings


def _own_keys(process: str) -> dict[KeyPurpose, tuple[str, ...]]:
    return {purpose: EVERY_KEY[purpose] for purpose in PROCESS_PURPOSES[process]}


@pytest.mark.parametrize("process", PROCESSES)
def test_process_starts_with_exactly_its_keys(production: Settings, process: str) -> None:
    given = replace(production, keys=_own_keys(process))
    assert find_setting_problems(given, process) == {}


@pytest.mark.parametrize("process", PROCESSES)
def test_process_refuses_each_key_that_it_has_no_use_for(production: Settings, process: str) -> None:
    """The text names the process and says what to do."""
    own = _own_keys(process)
    for purpose in KeyPurpose:
        if purpose in own:
            continue
        problems = find_setting_problems(
            replace(production, keys={**own, purpose: EVERY_KEY[purpose]}), process
        )
        assert problems.keys() == {KEY_VARIABLES[purpose]}
        (text,) = problems[KEY_VARIABLES[purpose]]
        assert f"The process {process} has no use for this key: remove it" in text
        assert EVERY_KEY[purpose][0] not in text


@pytest.mark.parametrize("process", PROCESSES)
def test_process_refuses_to_start_without_one_of_its_keys(production: Settings, process: str) -> None:
    own = _own_keys(process)
    for purpose in own:
        less = {other: keys for other, keys in own.items() if other is not purpose}
        problems = find_setting_problems(replace(production, keys=less), process)
        assert problems.keys() == {KEY_VARIABLES[purpose]}
        assert "mizan keys new" in problems[KEY_VARIABLES[purpose]][0]


@pytest.mark.parametrize("process", PROCESSES)
def test_key_for_all_purposes_is_accepted_beside_the_keys_and_never_instead(
    production: Settings, process: str
) -> None:
    """It only decrypts, during an upgrade. A process without keys has no use for it either."""
    old = replace(production, secret_keys=(Fernet.generate_key().decode(),))
    beside = find_key_problems(replace(old, keys=_own_keys(process)), process)
    instead = find_key_problems(old, process)
    if PROCESS_PURPOSES[process]:
        assert beside == {}
        assert instead.keys() == {KEY_VARIABLES[purpose] for purpose in PROCESS_PURPOSES[process]}
        assert all("docs/upgrading.md" in texts[0] for texts in instead.values())
    else:
        assert beside.keys() == instead.keys() == {FALLBACK_VARIABLE}


@pytest.mark.parametrize("module", MODULES)
def test_service_with_a_needless_key_ends_with_a_clear_text(
    good: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str
) -> None:
    """As the service itself says it. A service without keys refuses the key for all purposes, too."""
    process = "checkout-verifier" if "verification" in module else module
    needless = [purpose for purpose in KeyPurpose if purpose not in PROCESS_PURPOSES[process]]
    names = [KEY_VARIABLES[purpose] for purpose in needless]
    if not PROCESS_PURPOSES[process]:
        names.append(FALLBACK_VARIABLE)
    for name in names:
        good.setenv(name, Fernet.generate_key().decode())
    with pytest.raises(SystemExit) as ended:
        import_module(f"services.{module}.__main__").main()
    told = capsys.readouterr().err
    assert ended.value.code == 78
    for name in names:
        assert f"\n  {name}: The process {process} has no use for this key: remove it" in told


@pytest.mark.parametrize("process", PROCESSES)
def test_kms_replaces_the_keys_of_stored_texts_and_nothing_else(production: Settings, process: str) -> None:
    """A process that stores nothing encrypted has no use for the KMS, nor for its token."""
    transit = TransitSettings("https://vault.internal", Path("/run/token"))
    own = _own_keys(process)
    local: dict[KeyPurpose, tuple[str, ...]] = {
        purpose: keys for purpose, keys in own.items() if purpose not in STORED_PURPOSES
    }
    problems = find_key_problems(replace(production, keys=local, transit=transit), process)
    assert problems.keys() == (set() if own.keys() - local.keys() else {"TRANSIT_URL"})
    decrypts_only = replace(transit, encrypts=False)
    missing = find_key_problems(replace(production, keys=local, transit=decrypts_only), process)
    assert missing.keys() - {"TRANSIT_URL"} == {
        KEY_VARIABLES[purpose] for purpose in own.keys() - local.keys()
    }


def test_outside_production_every_process_takes_any_key(production: Settings) -> None:
    development = replace(production, environment=Environment.DEVELOPMENT, keys=EVERY_KEY)
    for process in PROCESSES:
        assert find_setting_problems(development, process) == {}


def test_commands_refuse_keys_that_they_have_no_use_for(production: Settings) -> None:
    """`mizan keys` also takes those of customer data. No command takes session keys."""
    given = replace(production, keys=EVERY_KEY)
    own = PROCESS_PURPOSES[COMMAND_LINE]
    assert find_command_problems(given, own).keys() == {"MIZAN_CUSTOMER_KEYS", "MIZAN_SESSION_KEYS"}
    assert find_command_problems(given, STORED_PURPOSES).keys() == {"MIZAN_SESSION_KEYS"}


@pytest.mark.usefixtures("production")
def test_command_with_a_session_key_ends_with_a_clear_text(good: pytest.MonkeyPatch) -> None:
    good.setenv("MIZAN_SESSION_KEYS", EVERY_KEY[KeyPurpose.SESSIONS][0])
    for words in (["app", "list"], ["keys", "status"]):
        refused = CliRunner().invoke(main, words)
        assert refused.exit_code == 1
        # The command line hides the word behind a sensitive name.
        assert (
            "MIZAN_SESSION_KEYS: [redacted] command line has no use for this key: remove it" in refused.stderr
        )


@pytest.mark.usefixtures("production")
def test_migrations_need_no_keys(good: pytest.MonkeyPatch) -> None:
    """They start without one; what then fails is PostgreSQL, which is not there."""
    done = CliRunner().invoke(main, ["migrate"])
    assert (done.exit_code, "KEYS" in done.stderr) == (1, False)
    good.setenv("MIZAN_CUSTOMER_KEYS", EVERY_KEY[KeyPurpose.CUSTOMER_DATA][0])
    refused = CliRunner().invoke(main, ["migrate"])
    assert (refused.exit_code, "MIZAN_CUSTOMER_KEYS: " in refused.stderr) == (78, True)
