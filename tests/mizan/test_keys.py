"""`mizan keys`: secrets are re-encrypted with a new first key, so that old keys can be removed."""

import json

from cryptography.fernet import Fernet

from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from tests.mizan.conftest import KEY, Mizan

NEW = Fernet.generate_key().decode()


def _made(run: Mizan, **more: str) -> dict[str, str]:
    made: dict[str, str] = json.loads(run("app", "create", "--name", "Coffee", "--json", **more).stdout)
    return made


def test_secrets_of_the_old_key_are_encrypted_with_the_new_one(run: Mizan, database: Database) -> None:
    made = _made(run)
    both = f"{NEW},{KEY}"
    before = json.loads(run("keys", "status", "--json", MIZAN_SECRET_KEYS=both).stdout)["tables"]
    assert before[0] == {"table": "webhook_secrets", "key 1": 0, "key 2": 1, "no key": 0}
    after = run("keys", "reseal", "--json", MIZAN_SECRET_KEYS=both)
    assert after.exit_code == 0
    assert json.loads(after.stdout)["tables"][0] == {
        "table": "webhook_secrets",
        "key 1": 1,
        "key 2": 0,
        "no key": 0,
    }
    with database.transaction() as connection:
        application_id = connection.execute("select id from applications").fetchall()[0][0]
        secret = decrypt_webhook_secret(connection, SecretBox((NEW,)), application_id, 1)
    assert secret.text == made["webhook_secret"]


def test_reencryption_covers_several_batches_and_all_tables(run: Mizan, database: Database) -> None:
    """Secrets that have the new key already are not changed."""
    _made(run)
    box = SecretBox((KEY,))
    with database.transaction() as connection:
        (application_id,) = connection.execute("select id from applications").fetchone() or (None,)
        connection.cursor().executemany(
            "insert into webhook_secrets (application_id, version, encrypted_secret) values (%s, %s, %s)",
            [
                (application_id, version, box.encrypt("x", f"webhook_secret/{application_id}/{version}"))
                for version in range(2, 1203)
            ],
        )
        connection.execute(
            """insert into provider_accounts (application_id, method, adapter, encrypted_credentials)
               values (%s, 'card', 'plutu', %s)""",
            (application_id, box.encrypt("{}", "account")),
        )
    both = f"{NEW},{KEY}"
    after = json.loads(run("keys", "reseal", "--json", MIZAN_SECRET_KEYS=both).stdout)["tables"]
    assert [(row["key 1"], row["key 2"]) for row in after] == [(1202, 0), (1, 0), (0, 0)]
    with database.cursor() as cursor:
        sealed = cursor.execute("select encrypted_secret from webhook_secrets order by version").fetchall()
        run("keys", "reseal", MIZAN_SECRET_KEYS=both)
        assert (
            cursor.execute("select encrypted_secret from webhook_secrets order by version").fetchall()
            == sealed
        )


def test_secrets_that_no_key_decrypts_are_reported_and_not_changed(run: Mizan, database: Database) -> None:
    _made(run)
    with database.cursor() as cursor:
        sealed = cursor.execute("select encrypted_secret from webhook_secrets").fetchall()
        status = run("keys", "status", MIZAN_SECRET_KEYS=NEW)
        assert status.exit_code == 1
        assert run("keys", "reseal", MIZAN_SECRET_KEYS=NEW).exit_code == 1
        assert cursor.execute("select encrypted_secret from webhook_secrets").fetchall() == sealed
    assert "no key" in status.stdout
