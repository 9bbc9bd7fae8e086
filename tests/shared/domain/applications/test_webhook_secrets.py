"""Rolling webhook secrets: all versions are kept, one is current."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest

from shared.domain.applications.errors import (
    ApplicationNotFoundError,
    WebhookSecretNotFoundError,
    WebhookSecretRolledError,
)
from shared.domain.applications.webhook_secrets import (
    WebhookSecret,
    current_secret_version,
    decrypt_webhook_secret,
    roll_webhook_secret,
)
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox, WrongPurposeError
from tests.shared.domain.applications.conftest import Create, Rows


def _roll(database: Database, box: SecretBox, application_id: UUID) -> WebhookSecret:
    with database.transaction() as connection:
        return roll_webhook_secret(connection, box, application_id)


def _open(database: Database, box: SecretBox, application_id: UUID, version: int) -> str:
    with database.transaction() as connection:
        return decrypt_webhook_secret(connection, box, application_id, version).text


def test_roll_makes_the_next_version_current(
    database: Database, box: SecretBox, create: Create, rows: Rows
) -> None:
    """§6.6: new deliveries use the new secret; retries of earlier ones use the old one."""
    made = create()
    rolled = _roll(database, box, made.id)
    assert rolled.version == 2
    assert rolled.text not in repr(rolled)
    assert _open(database, box, made.id, 1) == made.webhook_secret != rolled.text
    assert _open(database, box, made.id, 2) == rolled.text
    assert rows("select webhook_secret_version from applications") == [(2,)]


def test_first_roll_of_an_application_without_a_secret_is_version_1(
    database: Database, box: SecretBox, application_id: UUID
) -> None:
    assert _roll(database, box, application_id).version == 1


def test_concurrent_rolls_make_a_version_each(
    database: Database, box: SecretBox, create: Create, rows: Rows
) -> None:
    """No secret that was shown is lost, and the last one is current."""
    made = create()
    with ThreadPoolExecutor(8) as pool:
        rolled = list(pool.map(lambda _: _roll(database, box, made.id), range(16)))
    assert sorted(secret.version for secret in rolled) == list(range(2, 18))
    assert all(_open(database, box, made.id, secret.version) == secret.text for secret in rolled)
    assert rows("select webhook_secret_version from applications") == [(17,)]


def test_version_is_replaced_once_by_concurrent_rolls(
    database: Database, box: SecretBox, create: Create, rows: Rows
) -> None:
    """The other callers get an error with the current version."""
    made = create()

    def replace(_: int) -> bool:
        try:
            with database.transaction() as connection:
                roll_webhook_secret(connection, box, made.id, replacing=1)
        except WebhookSecretRolledError as error:
            assert "its version is now 2" in str(error)  # noqa: PT017  one of eight
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(replace, range(8))) == 1
    assert rows("select webhook_secret_version from applications") == [(2,)]


def test_current_version_is_returned_without_the_secret(
    database: Database, box: SecretBox, create: Create, application_id: UUID, rows: Rows
) -> None:
    made = create()
    _roll(database, box, made.id)
    with database.cursor() as cursor:
        current = current_secret_version(cursor, made.id)
        assert current is not None
        assert [(current.number, current.since)] == rows(
            "select version, created_at from webhook_secrets where version = 2"
        )
        assert current_secret_version(cursor, application_id) is None


def test_failed_roll_leaves_the_old_secret_current(
    database: Database, box: SecretBox, create: Create, rows: Rows
) -> None:
    """The new version and the pointer to it are one transaction."""
    made = create()
    with pytest.raises(ZeroDivisionError), database.transaction() as connection:
        roll_webhook_secret(connection, box, made.id)
        raise ZeroDivisionError
    assert rows("select webhook_secret_version from applications") == [(1,)]
    assert rows("select version from webhook_secrets") == [(1,)]


@pytest.mark.parametrize(
    "moved",
    [
        (("victim", 1), ("attacker", 1)),  # to another application
        (("attacker", 1), ("attacker", 2)),  # to another version
    ],
)
def test_secret_moved_to_another_row_is_refused(
    database: Database, box: SecretBox, create: Create, rows: Rows, moved: tuple[tuple[str, int], ...]
) -> None:
    """Application and version are encrypted together with it."""
    source, target = moved
    ids = {name: create(name).id for name in ("victim", "attacker")}
    _roll(database, box, ids["attacker"])
    rows(
        """update webhook_secrets set encrypted_secret =
           (select encrypted_secret from webhook_secrets where application_id = %s and version = %s)
           where application_id = %s and version = %s returning 1""",
        *(ids[source[0]], source[1], ids[target[0]], target[1]),
    )
    with pytest.raises(WrongPurposeError):
        _open(database, box, ids[target[0]], target[1])


def test_unknown_application_or_version_is_an_error(
    database: Database, box: SecretBox, create: Create
) -> None:
    unknown = uuid4()
    with pytest.raises(ApplicationNotFoundError, match=str(unknown)):
        _roll(database, box, unknown)
    with pytest.raises(WebhookSecretNotFoundError, match="version 2"):
        _open(database, box, create().id, 2)
