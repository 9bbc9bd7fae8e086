"""Every call needs an API key and an access token of one application (§5), or it is 401 (§7)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from time import monotonic
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from services.api import authentication
from services.api.app import make_app
from services.api.authentication import CACHED_S
from shared.domain.applications.credentials import (
    CredentialKind,
    IssuedCredential,
    issue_credential,
    list_credentials,
    revoke_credential,
)
from shared.platform.database.pool import Database
from shared.platform.settings import Settings
from tests.api.conftest import PATH, MakeApplication, Merchant, data_of, merchant_of
from tests.clock import Clock

WaitAWhile = Callable[[], None]
UNKNOWN_KEY, UNKNOWN_TOKEN = "pk_" + "x" * 32, "at_" + "x" * 32


def _calls(merchant: Merchant) -> Iterator[TestResponse]:
    """Call every route, also with bodies that would be refused if they were read."""
    yield merchant.create()
    yield merchant.post("this is no JSON")
    yield merchant.post("{}" + " " * 100_000)
    yield merchant.get(uuid4())
    yield merchant.get("not-a-uuid")


def _assert_key_refused(merchant: Merchant) -> None:
    for answer in _calls(merchant):
        assert answer.status_code == 401, answer.text
        assert answer.content_type == "application/json"
        body = answer.get_json()
        assert list(body) == ["error"]
        assert isinstance(body["error"], str)
        assert body["error"]


def _assert_token_refused(merchant: Merchant) -> None:
    for answer in _calls(merchant):
        assert answer.status_code == 401, answer.text
        assert answer.content_type == "application/json"
        body = answer.get_json()
        assert list(body) == ["message"]
        assert isinstance(body["message"], str)
        assert body["message"]


def _issue(database: Database, merchant: Merchant, kind: CredentialKind) -> IssuedCredential:
    with database.transaction() as connection:
        return issue_credential(connection, merchant.application_id, kind)


def _last_uses(database: Database, merchant: Merchant) -> list[datetime | None]:
    with database.transaction() as connection:
        return [
            credential.last_used_at for credential in list_credentials(connection, merchant.application_id)
        ]


@pytest.fixture
def wait_a_while(monkeypatch: pytest.MonkeyPatch) -> WaitAWhile:
    """Return a function that lets the cache of credentials expire."""
    waited = 0.0

    def wait() -> None:
        nonlocal waited
        waited += CACHED_S
        monkeypatch.setattr(authentication, "monotonic", lambda: monotonic() + waited)

    return wait


def test_a_missing_or_unknown_key_is_401_with_an_error(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§5, §7: `{"error": text}`, before the body or the path is read."""
    key, token = merchant.application.api_key, merchant.application.access_token
    rows = [
        ("missing", None),
        ("empty", ""),
        ("blank", "   "),
        ("unknown", UNKNOWN_KEY),
        ("another kind: the token", token),
        ("another kind: the webhook secret", merchant.application.webhook_secret),
        ("in capitals", key.upper()),
        ("cut", key[:-1]),
        ("longer", f"{key}x"),
        ("only the prefix", "pk_"),
        ("as a bearer", f"Bearer {key}"),
        ("in quotes", f'"{key}"'),
    ]
    for why, value in rows:
        with subtests.test(why):
            _assert_key_refused(merchant.with_headers(X_API_Key=value))


def test_a_missing_or_invalid_token_is_401_with_a_message(
    merchant: Merchant, other_merchant: Merchant, subtests: pytest.Subtests
) -> None:
    """§5, §7: `{"message": text}`, before the body or the path is read."""
    token = merchant.application.access_token
    rows = [
        ("missing", None),
        ("empty", ""),
        ("blank", "   "),
        ("the scheme alone", "Bearer"),
        ("the scheme and a space", "Bearer "),
        ("no scheme", token),
        ("no space", f"Bearer{token}"),
        ("another scheme", f"Basic {token}"),
        ("another scheme", f"Token {token}"),
        ("unknown", f"Bearer {UNKNOWN_TOKEN}"),
        ("another kind: the key", f"Bearer {merchant.application.api_key}"),
        ("another kind: the webhook secret", f"Bearer {merchant.application.webhook_secret}"),
        ("another application's", f"Bearer {other_merchant.application.access_token}"),
        ("in capitals", f"Bearer {token.upper()}"),
        ("cut", f"Bearer {token[:-1]}"),
        ("two of them", f"Bearer {token} {token}"),
        ("two of them", f"Bearer {token}, Bearer {token}"),
        ("in quotes", f'Bearer "{token}"'),
    ]
    for why, value in rows:
        with subtests.test(why, value=value):
            _assert_token_refused(merchant.with_headers(Authorization=value))


def test_key_is_checked_before_the_token(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """DESIGN §3: if both are wrong, the error is about the key."""
    for key, authorization in product(
        [None, "", UNKNOWN_KEY], [None, "", "Bearer", f"Bearer {UNKNOWN_TOKEN}"]
    ):
        with subtests.test(key=key, authorization=authorization):
            _assert_key_refused(merchant.with_headers(X_API_Key=key, Authorization=authorization))


def test_key_and_token_must_belong_to_one_application(merchant: Merchant, other_merchant: Merchant) -> None:
    """DESIGN §3: otherwise the token is invalid, also if both are cached as valid in their own pairs."""
    assert (merchant.create().status_code, other_merchant.create().status_code) == (201, 201)
    _assert_token_refused(merchant.with_headers(X_API_Key=other_merchant.application.api_key))
    _assert_token_refused(other_merchant.with_headers(X_API_Key=merchant.application.api_key))


def test_authorization_scheme_is_parsed_as_in_rfc_9110(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """RFC 9110 §11: the scheme is case-insensitive, and one or more spaces precede the token."""
    made = data_of(merchant.create(), 201)
    for start in ("Bearer ", "bearer ", "BEARER ", "Bearer  "):
        with subtests.test(start=start):
            caller = merchant.with_headers(Authorization=f"{start}{merchant.application.access_token}")
            assert data_of(caller.get(made["uuid"]), 200) == made


def test_hostile_headers_are_401_and_never_an_internal_error(
    merchant: Merchant, subtests: pytest.Subtests
) -> None:
    """§7"""
    rows = [
        ("not ASCII", "مفتاح".encode().decode("latin-1")),  # WSGI decodes the bytes as Latin-1
        ("no character at all", "\xff\xfe\x80"),
        ("control characters", "a\x01\x1b[2J\x7f"),
        ("NUL", f"{merchant.application.api_key}\0"),
        ("long", "x" * 10_000),
        ("a great many spaces", "Bearer" + " " * 10_000),
        ("a great many words", "Bearer " + "a " * 5_000),
        ("SQL", "' or true --"),
    ]
    for why, value in rows:
        with subtests.test(why):
            for header, word in (("HTTP_X_API_KEY", "error"), ("HTTP_AUTHORIZATION", "message")):
                for text in (value, f"Bearer {value}"):
                    answer = merchant.client.get(
                        f"{PATH}/{uuid4()}", headers=dict(merchant.headers), environ_overrides={header: text}
                    )
                    assert answer.status_code == 401
                    assert list(answer.get_json()) == [word]


def test_all_keys_and_tokens_of_an_application_work(merchant: Merchant, database: Database) -> None:
    """DESIGN §3: several at a time and in any pair, so that they can be rotated without an outage."""
    made = data_of(merchant.create(), 201)
    keys = [merchant.application.api_key, _issue(database, merchant, CredentialKind.API_KEY).text]
    tokens = [merchant.application.access_token, _issue(database, merchant, CredentialKind.ACCESS_TOKEN).text]
    for key, token in product(keys, tokens):
        caller = merchant.with_headers(X_API_Key=key, Authorization=f"Bearer {token}")
        assert data_of(caller.get(made["uuid"]), 200) == made


@pytest.mark.parametrize("kind", CredentialKind)
def test_revoked_credential_stops_working_once_its_cache_entry_expires(
    merchant: Merchant, database: Database, wait_a_while: WaitAWhile, kind: CredentialKind
) -> None:
    """That is in less than 5 seconds. The other credentials keep working."""
    assert CACHED_S < 5
    issued = _issue(database, merchant, kind)
    if kind is CredentialKind.API_KEY:
        caller, refused = merchant.with_headers(X_API_Key=issued.text), _assert_key_refused
    else:
        caller, refused = merchant.with_headers(Authorization=f"Bearer {issued.text}"), _assert_token_refused
    assert caller.create().status_code == 201
    with database.transaction() as connection:
        assert revoke_credential(connection, merchant.application_id, issued.id)
    wait_a_while()
    refused(caller)
    assert merchant.create().status_code == 200


def test_refused_credentials_are_not_cached(merchant: Merchant, database: Database) -> None:
    """A key that was just issued works at once."""
    _assert_key_refused(merchant.with_headers(X_API_Key=UNKNOWN_KEY))
    _assert_token_refused(merchant.with_headers(Authorization=f"Bearer {UNKNOWN_TOKEN}"))
    key = _issue(database, merchant, CredentialKind.API_KEY).text
    assert merchant.with_headers(X_API_Key=key).create().status_code == 201


def test_use_of_credentials_is_recorded_about_once_a_minute(
    merchant: Merchant, database: Database, clock: Clock, wait_a_while: WaitAWhile
) -> None:
    """For both credentials. A refused call does not count as use."""
    merchant.with_headers(Authorization=f"Bearer {UNKNOWN_TOKEN}").create()
    merchant.with_headers(X_API_Key=UNKNOWN_KEY).create()
    assert _last_uses(database, merchant) == [None, None]
    before = clock.now()
    merchant.create()
    first = _last_uses(database, merchant)
    assert all(at is not None and before <= at <= clock.now() for at in first)
    clock.advance(timedelta(seconds=50))
    wait_a_while()
    merchant.create()
    assert _last_uses(database, merchant) == first
    clock.advance(timedelta(seconds=11))
    wait_a_while()
    merchant.create()
    later = _last_uses(database, merchant)
    assert all(at is not None and at >= before + timedelta(seconds=61) for at in later)


def test_recording_use_of_a_credential_never_waits_for_a_lock(merchant: Merchant, database: Database) -> None:
    """A locked row is skipped, so that no payment is delayed."""
    with database.transaction() as connection:
        connection.execute("select from credentials for update")
        assert merchant.create().status_code == 201
    assert _last_uses(database, merchant) == [None, None]


class TestManyRefusals:
    """Requests with unknown credentials are limited for each client address."""

    @pytest.fixture
    def limited(self, settings: Settings, api_database: Database) -> FlaskClient:
        api = replace(settings.api, refusals_per_minute=3)
        return make_app(replace(settings, api=api, trusted_proxies=1), api_database).test_client()

    def test_are_answered_with_429_and_when_to_retry(
        self, limited: FlaskClient, make_application: MakeApplication
    ) -> None:
        """Whoever has valid credentials is served all the same."""
        merchant = merchant_of(limited, make_application("Tripoli Coffee"))
        guesser = merchant.with_headers(X_API_Key="pk_guessed")
        statuses = [guesser.create().status_code for _ in range(5)]
        assert statuses == [401] * 3 + [429] * 2
        refused = merchant.with_headers(Authorization="Bearer at_guessed").create()
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 20
        assert merchant.create().status_code == 201

    def test_are_counted_by_the_address_that_our_proxy_saw(
        self, limited: FlaskClient, make_application: MakeApplication
    ) -> None:
        """IPv6 clients by their /64. What the client itself sent in X-Forwarded-For does not count."""
        merchant = merchant_of(limited, make_application("Tripoli Coffee")).with_headers(
            X_API_Key="pk_guessed"
        )

        def statuses(*forwarded: str) -> list[int]:
            return [merchant.with_headers(X_Forwarded_For=one).create().status_code for one in forwarded]

        assert statuses(*(f"203.0.113.{n}, 2001:db8:1:2::{n}" for n in range(1, 5))) == [401] * 3 + [429]
        assert statuses("2001:db8:1:2:ffff::1", "2001:db8:1:3::1", "192.0.2.1") == [429, 401, 401]
