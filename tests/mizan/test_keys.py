"""`mizan keys`: texts of each purpose are re-encrypted with its new first key, so that old keys can be removed."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from cryptography.fernet import Fernet

import mizan.keys as keys_module
from mizan.keys import ENCRYPTED_COLUMNS, reencrypt_column
from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.platform.database.pool import Database
from shared.platform.encryption import DecryptionError, SecretBox
from shared.platform.keys import STORED_PURPOSES
from shared.platform.settings import KEY_VARIABLES, KeyPurpose
from tests.mizan.conftest import KEY, Mizan
from tests.transit_server import TOKEN, TransitServer

NEW = Fernet.generate_key().decode()
OTHERS = {purpose: Fernet.generate_key().decode() for purpose in STORED_PURPOSES}
OWN_KEYS = {KEY_VARIABLES[purpose]: key for purpose, key in OTHERS.items()}
_SELECT = {
    KeyPurpose.WEBHOOK_SECRETS: "select encrypted_secret from webhook_secrets order by version",
    KeyPurpose.PROVIDER_CREDENTIALS: "select encrypted_credentials from provider_accounts order by id",
    KeyPurpose.CUSTOMER_DATA: "select encrypted_phone from code_challenges order by attempt_id",
}


def _made(run: Mizan, **more: str) -> dict[str, str]:
    made: dict[str, str] = json.loads(
        run("app", "create", "--name", "Coffee", "--live", "--json", **more).stdout
    )
    return made


def _tables(run: Mizan, *words: str, **more: str) -> dict[str, dict[str, Any]]:
    """Run a command that prints the table, and return its rows by purpose."""
    rows = json.loads(run("keys", *words, "--json", **more).stdout)["tables"]
    return {row.pop("purpose"): row for row in rows}


def _texts(database: Database, purpose: KeyPurpose) -> list[str]:
    with database.cursor() as cursor:
        return [row[0] for row in cursor.execute(_SELECT[purpose].encode()).fetchall()]


def _add_texts(database: Database, application_id: UUID, count: int) -> None:
    """Add texts of every purpose that KEY has encrypted."""
    box = SecretBox((KEY,))
    with database.transaction() as connection:
        connection.cursor().executemany(
            "insert into webhook_secrets (application_id, version, encrypted_secret) values (%s, %s, %s)",
            [
                (application_id, version, box.encrypt("x", f"webhook_secret/{application_id}/{version}"))
                for version in range(2, count + 2)
            ],
        )
        connection.cursor().executemany(
            """insert into provider_accounts (application_id, method, adapter, encrypted_credentials, replaced_at)
               values (%s, 'card', 'plutu', %s, now())""",
            [(application_id, box.encrypt("{}", "account")) for _ in range(count)],
        )
        connection.cursor().executemany(
            "insert into code_challenges (attempt_id, encrypted_phone, expires_at) values (%s, %s, now())",
            [(uuid4(), box.encrypt("[]", "code_challenge")) for _ in range(count)],
        )


@pytest.fixture
def application_id(run: Mizan) -> UUID:
    return UUID(_made(run)["application_id"])


def test_secrets_of_the_old_key_are_encrypted_with_the_new_one(run: Mizan, database: Database) -> None:
    """With several keys for all purposes, as in the version before."""
    made = _made(run)
    both = f"{NEW},{KEY}"
    assert _tables(run, "status", MIZAN_SECRET_KEYS=both)["webhook_secrets"] == {
        "table": "webhook_secrets",
        "key 1": 0,
        "key 2": 1,
        "no key": 0,
    }
    after = _tables(run, "reseal", MIZAN_SECRET_KEYS=both)["webhook_secrets"]
    assert (after["key 1"], after["key 2"], after["no key"]) == (1, 0, 0)
    with database.transaction() as connection:
        application_id = UUID(made["application_id"])
        secret = decrypt_webhook_secret(connection, SecretBox((NEW,)), application_id, 1)
    assert secret.text == made["webhook_secret"]


def test_each_purpose_moves_from_the_one_key_to_its_own(
    run: Mizan, database: Database, application_id: UUID
) -> None:
    """The upgrade: afterwards the old key decrypts nothing, and no key decrypts what belongs to another purpose.

    A second run changes nothing.
    """
    _add_texts(database, application_id, 3)
    before = _tables(run, "status", **OWN_KEYS)
    assert {purpose: (row["key 1"], row["key 2"]) for purpose, row in before.items()} == {
        "webhook_secrets": (0, 4),
        "provider_credentials": (0, 3),
        "customer_data": (0, 3),
    }
    after = _tables(run, "reseal", **OWN_KEYS)
    assert {purpose: (row["key 1"], row["key 2"]) for purpose, row in after.items()} == {
        "webhook_secrets": (4, 0),
        "provider_credentials": (3, 0),
        "customer_data": (3, 0),
    }
    for purpose in STORED_PURPOSES:
        for text in _texts(database, purpose):
            boxes = [SecretBox((key,)) for key in (KEY, *OTHERS.values())]
            assert [box.find_key(text) for box in boxes].count("key 1") == 1
            assert SecretBox((OTHERS[purpose],)).find_key(text) == "key 1"
    texts = {purpose: _texts(database, purpose) for purpose in STORED_PURPOSES}
    run("keys", "reseal", **OWN_KEYS)
    assert {purpose: _texts(database, purpose) for purpose in STORED_PURPOSES} == texts


@pytest.mark.parametrize("purpose", STORED_PURPOSES)
def test_one_purpose_is_rotated_without_touching_the_others(
    run: Mizan, database: Database, application_id: UUID, purpose: KeyPurpose
) -> None:
    _add_texts(database, application_id, 2)
    run("keys", "reseal", **OWN_KEYS)
    before = {other: _texts(database, other) for other in STORED_PURPOSES}
    rotated = {KEY_VARIABLES[purpose]: f"{NEW},{OTHERS[purpose]}", "MIZAN_SECRET_KEYS": ""}
    assert run("keys", "reseal", "--purpose", purpose.value, **rotated).exit_code == 0
    for other in STORED_PURPOSES:
        assert (_texts(database, other) == before[other]) is (other is not purpose)
    assert {SecretBox((NEW,)).find_key(text) for text in _texts(database, purpose)} == {"key 1"}


@pytest.mark.parametrize("column", ENCRYPTED_COLUMNS, ids=lambda column: column.table)
def test_interrupted_reencryption_keeps_whole_batches_and_can_be_run_again(
    run: Mizan,
    database: Database,
    application_id: UUID,
    column: keys_module.EncryptedColumn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every text can be decrypted at any time with the new and the old key."""
    _add_texts(database, application_id, 7)
    monkeypatch.setattr(keys_module, "BATCH", 2)
    box = SecretBox((NEW, KEY))
    reencrypted = 0

    def fail_in_the_third_batch(text: str) -> str:
        nonlocal reencrypted
        reencrypted += 1
        if reencrypted == 6:
            raise KeyboardInterrupt
        return SecretBox((NEW, KEY)).reencrypt(text)

    monkeypatch.setattr(box, "reencrypt", fail_in_the_third_batch)
    with pytest.raises(KeyboardInterrupt):
        reencrypt_column(database, box, column)
    found = [box.find_key(text) for text in _texts(database, column.purpose)]
    assert (found.count("key 1"), found.count(None)) == (4, 0)
    monkeypatch.undo()
    again = {KEY_VARIABLES[column.purpose]: NEW}
    assert run("keys", "reseal", "--purpose", column.purpose.value, **again).exit_code == 0
    assert {SecretBox((NEW,)).find_key(text) for text in _texts(database, column.purpose)} == {"key 1"}


def test_reencryption_covers_several_batches(run: Mizan, database: Database, application_id: UUID) -> None:
    _add_texts(database, application_id, 1201)
    after = _tables(run, "reseal", MIZAN_SECRET_KEYS=f"{NEW},{KEY}")
    assert [(row["key 1"], row["key 2"]) for row in after.values()] == [(1202, 0), (1201, 0), (1201, 0)]


def test_secrets_that_no_key_decrypts_are_reported_and_not_changed(run: Mizan, database: Database) -> None:
    _made(run)
    sealed = _texts(database, KeyPurpose.WEBHOOK_SECRETS)
    status = run("keys", "status", MIZAN_SECRET_KEYS=NEW)
    assert status.exit_code == 1
    assert run("keys", "reseal", MIZAN_SECRET_KEYS=NEW).exit_code == 1
    assert _texts(database, KeyPurpose.WEBHOOK_SECRETS) == sealed
    assert "no key" in status.stdout


def test_customer_data_is_left_out_if_its_keys_are_not_given(run: Mizan, application_id: UUID) -> None:
    """The command line usually has the other two only. Asked for by name, it is an error."""
    given = {name: key for name, key in OWN_KEYS.items() if name != "MIZAN_CUSTOMER_KEYS"}
    environment = {**given, "MIZAN_WEBHOOK_SECRET_KEYS": KEY, "MIZAN_SECRET_KEYS": ""}
    status = run("keys", "status", **environment)
    assert status.exit_code == 0, application_id
    assert "code_challenges" not in status.stdout
    assert "MIZAN_CUSTOMER_KEYS is not given" in status.stderr
    refused = run("keys", "reseal", "--purpose", "customer_data", **environment)
    assert (refused.exit_code, "MIZAN_CUSTOMER_KEYS" in refused.stderr) == (1, True)


def test_command_line_stores_what_only_the_keys_of_the_purpose_decrypt(
    run: Mizan, database: Database
) -> None:
    made = _made(run, **OWN_KEYS, MIZAN_SECRET_KEYS="")
    with database.transaction() as connection:
        application_id = UUID(made["application_id"])
        for purpose, key in OTHERS.items():
            box = SecretBox((key,))
            if purpose is KeyPurpose.WEBHOOK_SECRETS:
                secret = decrypt_webhook_secret(connection, box, application_id, 1)
                assert secret.text == made["webhook_secret"]
            else:
                with pytest.raises(DecryptionError):
                    decrypt_webhook_secret(connection, box, application_id, 1)


@pytest.mark.parametrize("purpose", list(KeyPurpose))
def test_new_key_is_printed_with_its_setting_and_its_processes(run: Mizan, purpose: KeyPurpose) -> None:
    """Only the key is on standard output, so that it can be piped."""
    made = run("keys", "new", "--purpose", purpose.value)
    Fernet(made.stdout.strip())
    assert KEY_VARIABLES[purpose] in made.stderr
    assert ("another one for each" in made.stderr) is (purpose is KeyPurpose.SESSIONS)


def test_texts_move_to_a_kms_and_follow_its_rotation(
    run: Mizan, database: Database, application_id: UUID, tmp_path: Path
) -> None:
    """Interrupted by an outage, it goes on where it stopped. Afterwards local keys are not needed."""
    _add_texts(database, application_id, 3)
    (tmp_path / "token").write_text(TOKEN)
    with TransitServer().running() as kms:
        environment = {
            "KEY_PROVIDER": "transit",
            "TRANSIT_URL": kms.url,
            "TRANSIT_TOKEN_FILE": str(tmp_path / "token"),
        }
        before = _tables(run, "status", **environment)["webhook_secrets"]
        assert (before["transit"], before["key 1"]) == (0, 4)
        kms.is_away = True
        failed = run("keys", "reseal", **environment)
        assert (failed.exit_code, "the KMS does not answer" in failed.stderr) == (1, True)
        kms.is_away = False
        after = _tables(run, "reseal", **environment)
        assert [(row["transit"], row["key 1"], row["no key"]) for row in after.values()] == [
            (4, 0, 0),
            (3, 0, 0),
            (3, 0, 0),
        ]
        environment["MIZAN_SECRET_KEYS"] = ""
        for key in kms.keys.values():
            key.rotate()
        old = _tables(run, "status", **environment)
        assert {row["transit older"] for row in old.values()} == {4, 3}
        moved = _tables(run, "reseal", **environment)
        assert {(row["transit older"], row["no key"]) for row in moved.values()} == {(0, 0)}
        for key in kms.keys.values():
            key.min_decryption_version = 2
        assert run("keys", "status", **environment).exit_code == 0
