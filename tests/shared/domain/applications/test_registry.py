"""Creating applications, renaming them and changing their webhook URL."""

from uuid import uuid4

import pytest

from shared.domain.applications.errors import (
    ApplicationExistsError,
    ApplicationNotFoundError,
    InvalidNameError,
)
from shared.domain.applications.registry import (
    NewApplication,
    create_application,
    list_applications,
    rename_application,
    set_webhook_url,
)
from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import WebhookUrl
from shared.platform.tokens import hash_token
from tests.shared.domain.applications.conftest import Create, Rows

URL = WebhookUrl("https://shop.example.ly/hook")


def test_new_application_has_key_token_and_webhook_secret(
    database: Database, box: SecretBox, create: Create, rows: Rows
) -> None:
    """§1: an API key, an access token and a webhook secret of version 1."""
    made = create("متجر", methods=frozenset({PaymentMethod.SADAD}), webhook_url=URL)
    assert rows("select kind, prefix, hash from credentials order by kind") == [
        ("access_token", made.access_token[:9], hash_token(made.access_token)),
        ("api_key", made.api_key[:14], hash_token(made.api_key)),
    ]
    with database.transaction() as connection:
        assert decrypt_webhook_secret(connection, box, made.id, 1).text == made.webhook_secret
        (application,) = list_applications(connection)
    assert (application.id, application.name, application.merchant_name) == (made.id, "متجر", "متجر")
    assert application.methods == (PaymentMethod.SADAD,)
    assert application.webhook_url == URL
    assert rows("select webhook_secret_version from applications") == [(1,)]


def test_issued_secrets_are_not_stored_in_plain_text(create: Create, rows: Rows) -> None:
    """Read access to the database is not enough to call the API or to sign a webhook."""
    made = create()
    stored = str(rows("select c, w, a from applications a, credentials c, webhook_secrets w"))
    for secret in (made.api_key, made.access_token, made.webhook_secret):
        assert secret[9:] not in stored
        assert secret not in repr(made)


def test_failed_transaction_creates_nothing(database: Database, box: SecretBox, rows: Rows) -> None:
    """Neither an application nor a merchant."""
    with pytest.raises(ZeroDivisionError), database.transaction() as connection:
        create_application(connection, box, NewApplication("shop"))
        raise ZeroDivisionError
    for table in ("merchants", "applications", "application_methods", "credentials", "webhook_secrets"):
        assert rows(f"select count(*) from {table}") == [(0,)]


def test_all_methods_are_enabled_by_default(database: Database, create: Create) -> None:
    """Methods are listed in a fixed order, applications oldest first."""
    first, second = create("a"), create("b", methods=frozenset({PaymentMethod.ADFALI, PaymentMethod.CARD}))
    with database.transaction() as connection:
        listed = list_applications(connection)
    assert [(application.id, application.methods) for application in listed] == [
        (first.id, (PaymentMethod.CARD, PaymentMethod.SADAD, PaymentMethod.ADFALI)),
        (second.id, (PaymentMethod.CARD, PaymentMethod.ADFALI)),
    ]


def test_the_webhook_url_is_set_and_removed(database: Database, create: Create, rows: Rows) -> None:
    """§6.1: one URL per application; without one, no webhooks are sent. Other applications keep theirs."""
    made = create("a")
    create("b", webhook_url=URL)
    for url in (WebhookUrl("https://new.example.ly/"), None):
        with database.transaction() as connection:
            set_webhook_url(connection, made.id, url)
        assert rows("select webhook_url from applications order by id") == [(url,), (URL,)]
    with pytest.raises(ApplicationNotFoundError), database.transaction() as connection:
        set_webhook_url(connection, uuid4(), URL)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "1 to 200 characters"),
        (" \t\u00a0", "1 to 200 characters"),
        ("م" * 201, "1 to 200 characters, not 201"),
        ("a\x00b", r"character '\\x00'"),
        ("a\nb", r"character '\\n'"),
        ("a\udcffb", r"character '\\udcff'"),
        ("a\u2028b", r"character '\\u2028'"),
    ],
)
def test_invalid_name_is_refused(create: Create, rows: Rows, name: str, told: str) -> None:
    """Of an application or a merchant, before anything is written."""
    with pytest.raises(InvalidNameError, match=f"application's name .*{told}"):
        create(name)
    with pytest.raises(InvalidNameError, match=f"merchant's name .*{told}"):
        create("shop", name)
    assert rows("select count(*) from merchants") == [(0,)]


def test_name_keeps_arabic_joiners_and_direction_marks(create: Create, rows: Rows) -> None:
    """Spaces around the name are removed. 200 characters are allowed."""
    create("  مت\u200cجر\u200f ")
    create("م" * 200)
    assert [name for (name,) in rows("select name from applications order by id")] == [
        "مت\u200cجر\u200f",
        "م" * 200,
    ]


def test_repeated_id_creates_no_second_application(create: Create, rows: Rows) -> None:
    """Nor a second merchant or credentials."""
    request_id = uuid4()
    assert create("shop", id=request_id).id == request_id
    with pytest.raises(ApplicationExistsError, match=str(request_id)):
        create("another", id=request_id)
    assert rows("select name from applications") == [("shop",)]
    assert rows("select name from merchants") == [("shop",)]
    assert len(rows("select from credentials")) == 2


def test_rename_changes_only_this_application(database: Database, create: Create, rows: Rows) -> None:
    """The return value says whether anything changed."""
    made, _ = create("shop"), create("other")
    for name, changes in [(" متجر ", True), ("متجر", False)]:
        with database.transaction() as connection:
            assert (rename_application(connection, made.id, name) is not None) is changes
    assert rows("select name from applications order by id") == [("متجر",), ("other",)]
    with pytest.raises(InvalidNameError), database.transaction() as connection:
        rename_application(connection, made.id, "a\x00")
