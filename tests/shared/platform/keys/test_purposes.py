"""Keys by purpose: who has which, and what decrypts what."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from shared.platform.encryption import DecryptionError, NoSecretKeysError, SecretBox, derive_key
from shared.platform.keys import PROCESS_PURPOSES, STORED_PURPOSES, LocalKeyProvider, check_keys, open_keys
from shared.platform.settings import KEY_VARIABLES, Environment, KeyPurpose, Settings, read_settings
from stack.services import SERVICES

OLD = Fernet.generate_key().decode()
KEYS = {purpose: (Fernet.generate_key().decode(),) for purpose in KeyPurpose}
CONTEXT = "row/1"


@pytest.fixture
def without_keys(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:9/mizan")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    return replace(read_settings(), keys={}, secret_keys=())


def test_text_of_one_purpose_cannot_be_decrypted_with_the_keys_of_another(without_keys: Settings) -> None:
    keys = open_keys(replace(without_keys, keys=KEYS))
    for purpose in KeyPurpose:
        encrypted = keys.open_box(purpose).encrypt("secret", CONTEXT)
        for other in KeyPurpose:
            if other is purpose:
                assert keys.open_box(other).decrypt(encrypted, CONTEXT) == "secret"
            else:
                with pytest.raises(DecryptionError, match=KEY_VARIABLES[other]):
                    keys.open_box(other).decrypt(encrypted, CONTEXT)


@pytest.mark.parametrize("environment", list(Environment))
def test_key_for_all_purposes_decrypts_and_does_not_encrypt_beside_a_purpose_key(
    without_keys: Settings, environment: Environment
) -> None:
    both = replace(without_keys, environment=environment, keys=KEYS, secret_keys=(OLD,))
    for purpose in KeyPurpose:
        box = open_keys(both).open_box(purpose)
        assert box.decrypt(SecretBox((OLD,)).encrypt("before", CONTEXT), CONTEXT) == "before"
        assert SecretBox(KEYS[purpose]).decrypt(box.encrypt("after", CONTEXT), CONTEXT) == "after"


@pytest.mark.parametrize("environment", list(Environment))
def test_key_for_all_purposes_replaces_missing_keys_outside_production_only(
    without_keys: Settings, environment: Environment
) -> None:
    only_old = open_keys(replace(without_keys, environment=environment, secret_keys=(OLD,)))
    for purpose in KeyPurpose:
        if environment is Environment.PRODUCTION:
            with pytest.raises(NoSecretKeysError, match=KEY_VARIABLES[purpose]):
                only_old.open_box(purpose)
        else:
            assert only_old.open_box(purpose).encrypt("x", CONTEXT)


def test_hash_keys_stay_those_of_the_last_key_while_keys_are_rotated(without_keys: Settings) -> None:
    """All processes have the last key, also those that are not restarted yet."""
    (own,) = KEYS[KeyPurpose.CUSTOMER_DATA]
    for given, last in [({}, OLD), ({KeyPurpose.CUSTOMER_DATA: (own,)}, OLD)]:
        keys = open_keys(replace(without_keys, keys=given, secret_keys=(OLD,)))
        assert keys.derive(KeyPurpose.CUSTOMER_DATA, "limits") == derive_key(last, "limits")
    alone = open_keys(replace(without_keys, keys={KeyPurpose.CUSTOMER_DATA: (own,)}))
    assert alone.derive(KeyPurpose.CUSTOMER_DATA, "limits") == derive_key(own, "limits")


def test_key_given_twice_counts_once(without_keys: Settings) -> None:
    keys = LocalKeyProvider(
        replace(without_keys, keys={KeyPurpose.WEBHOOK_SECRETS: (OLD,)}, secret_keys=(OLD,))
    )
    assert keys.keys_of(KeyPurpose.WEBHOOK_SECRETS) == (OLD,)


@pytest.mark.parametrize("process", sorted(PROCESS_PURPOSES))
def test_check_names_the_first_key_that_a_process_lacks(without_keys: Settings, process: str) -> None:
    own = {purpose: KEYS[purpose] for purpose in PROCESS_PURPOSES[process]}
    check_keys(process, replace(without_keys, keys=own))
    for purpose in own:
        less = {other: keys for other, keys in own.items() if other is not purpose}
        with pytest.raises(NoSecretKeysError, match=KEY_VARIABLES[purpose]):
            check_keys(process, replace(without_keys, keys=less))


def test_services_of_the_stack_are_declared_with_the_same_purposes() -> None:
    assert {service.name: service.key_purposes for service in SERVICES} == {
        process: purposes for process, purposes in PROCESS_PURPOSES.items() if process != "cli"
    }


def test_documented_table_says_who_has_which_keys(repository_root: Path) -> None:
    """docs/security.md, Keys: one row for each process, one column for each purpose."""
    section = (repository_root / "docs" / "security.md").read_text().partition("\n## Keys\n")[2]
    header, _, *rows = re.findall(r"^\|.*\|$", section.partition("\n## ")[0], re.MULTILINE)[
        : len(PROCESS_PURPOSES) + 2
    ]
    columns = [cell.strip().strip("`") for cell in header.strip("|").split("|")][1:]
    assert columns == [KEY_VARIABLES[purpose] for purpose in (*STORED_PURPOSES, KeyPurpose.SESSIONS)]
    documented = {}
    for row in rows:
        process, *cells = [cell.strip() for cell in row.strip("|").split("|")]
        documented[process.strip("`")] = {
            purpose
            for purpose, cell in zip((*STORED_PURPOSES, KeyPurpose.SESSIONS), cells, strict=True)
            if cell
        }
    assert documented == {process: set(purposes) for process, purposes in PROCESS_PURPOSES.items()}
