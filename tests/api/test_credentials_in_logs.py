"""No credential appears in any log line, whatever the outcome of the call (§5)."""

import io
import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from shared.domain.intents import store
from shared.platform.database.pool import DatabaseUnavailableError
from tests.api.conftest import PATH, Merchant, data_of
from tests.logs import capture_logs

GUESSED_KEY, GUESSED_TOKEN = "pk_GuessedKey7GuessedKey7GuessedK7", "at_GuessedTokenGuessedTokenGuess7"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    with capture_logs(level="debug") as stream:
        yield stream


def _assert_none_told(log: io.StringIO, merchant: Merchant) -> None:
    made = merchant.application
    for secret in (made.api_key, made.access_token, made.webhook_secret, GUESSED_KEY, GUESSED_TOKEN):
        assert secret not in log.getvalue()
        assert secret[3:] not in log.getvalue()  # also without its prefix


def _statuses(log: io.StringIO) -> list[int]:
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line["status"] for line in lines if line["event"] == "request answered"]


def test_calls_that_succeed_log_no_credential(merchant: Merchant, log: io.StringIO) -> None:
    """Create, repeat, retrieve."""
    made = data_of(merchant.create(), 201)
    merchant.create()
    merchant.get(made["uuid"])
    assert _statuses(log) == [201, 200, 200]
    _assert_none_told(log, merchant)


def test_calls_that_fail_log_no_credential(
    merchant: Merchant, other_merchant: Merchant, log: io.StringIO
) -> None:
    """Neither valid nor wrong credentials, nor credentials in the wrong place, such as the path."""
    key, token = merchant.application.api_key, merchant.application.access_token
    theirs = data_of(other_merchant.create(), 201)
    merchant.with_headers(X_API_Key=GUESSED_KEY, Authorization=f"Bearer {GUESSED_TOKEN}").create()
    merchant.with_headers(Authorization=f"Bearer {GUESSED_TOKEN}").create()
    merchant.with_headers(X_API_Key=token, Authorization=f"Bearer {key}").create()
    merchant.with_headers(Authorization=token).create()
    merchant.get(theirs["uuid"])
    merchant.get(key)
    merchant.get(f"{uuid4()}?api_key={key}&access_token={token}")
    merchant.create(amount=key, metadata={key: 1, token: None})
    merchant.post(f"X-API-Key={key}")
    merchant.client.delete(f"{PATH}/{token}", headers=dict(merchant.headers))
    assert _statuses(log) == [201, 401, 401, 401, 401, 403, 404, 404, 422, 422, 405]
    _assert_none_told(log, merchant)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (RuntimeError, 500),
        (DatabaseUnavailableError, 503),
    ],
)
def test_calls_that_crash_log_no_credential(
    merchant: Merchant,
    log: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Exception],
    status: int,
) -> None:
    """The log has the error without the credentials in its message."""
    told = f"no luck with {merchant.headers} and X-API-Key {merchant.application.api_key}"

    def crash(*_: object) -> None:
        raise kind(told)

    monkeypatch.setattr(store, "create_or_find", crash)
    assert merchant.create().status_code == status
    assert _statuses(log) == [status]
    assert "no luck with" in log.getvalue()
    _assert_none_told(log, merchant)
