"""`mizan app set-provider`: the provider account of an application and method."""

import json
from pathlib import Path

import pytest

from shared.domain.applications.provider_accounts import current_provider_accounts, get_provider_account
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.uuids import parse_uuid
from tests.mizan.conftest import KEY, Mizan

CREDENTIALS = {"api_key": "key-1", "access_token": "token-1", "secret_key": "hush-1"}
BOX = SecretBox((KEY,))


@pytest.fixture
def application(mizan: Mizan) -> str:
    return str(json.loads(mizan("create", "--name", "shop", "--live", "--json").stdout)["application_id"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps(CREDENTIALS))
    return path


def test_provider_account_is_set_and_replaced(
    mizan: Mizan, application: str, file: Path, database: Database
) -> None:
    """Credentials are stored encrypted only; the previous account is kept for attempts that started with it."""
    words = ("set-provider", application, "--method", "card", "--provider", "plutu", "--json")
    first = json.loads(mizan(*words, "--credentials", str(file)).stdout)
    assert first["callback_url"].endswith(f"/providers/plutu/callbacks/{first['account_id']}")
    file.write_text(json.dumps({**CREDENTIALS, "secret_key": "hush-2"}))
    second = json.loads(mizan(*words, "--credentials", str(file)).stdout)
    with database.cursor() as cursor:
        application_id, account_id = parse_uuid(application), parse_uuid(first["account_id"])
        assert application_id is not None
        assert account_id is not None
        current = current_provider_accounts(cursor, application_id)
        assert {method: str(account.id) for method, account in current.items()} == {
            PaymentMethod.CARD: second["account_id"]
        }
        assert current[PaymentMethod.CARD].decrypt_credentials(BOX)["secret_key"] == "hush-2"
        assert get_provider_account(cursor, account_id).decrypt_credentials(BOX) == CREDENTIALS
        rows = cursor.execute("select t::text from provider_accounts as t").fetchall()
    assert "hush" not in str(rows)
    assert "key-1" not in str(rows)


def test_test_application_gets_no_provider_account(mizan: Mizan, file: Path, database: Database) -> None:
    made = json.loads(mizan("create", "--name", "shop", "--json").stdout)
    words = ("set-provider", made["application_id"], "--method", "card", "--provider", "plutu")
    answer = mizan(*words, "--credentials", str(file))
    assert answer.exit_code == 1
    assert "this is a test application" in answer.stderr
    with database.cursor() as cursor:
        assert cursor.execute("select from provider_accounts").rowcount == 0


def test_sandbox_is_no_provider_of_an_account(mizan: Mizan, application: str) -> None:
    """A live application never reaches it."""
    assert mizan("set-provider", application, "--method", "card", "--provider", "sandbox").exit_code == 2


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"api_key": "a"}, "needs exactly these credentials"),
        ({**CREDENTIALS, "more": "x"}, "exactly these credentials: api_key, access_token, secret_key"),
        ({**CREDENTIALS, "api_key": ""}, "api_key is empty"),
        ({**CREDENTIALS, "access_token": "token\n"}, "access_token is empty, too long, or has spaces"),
        ({**CREDENTIALS, "api_key": 7}, "object of strings"),
        (["a"], "object of strings"),
    ],
)
def test_invalid_credentials_are_refused(
    mizan: Mizan, application: str, file: Path, given: object, complaint: str
) -> None:
    file.write_text(json.dumps(given))
    words = ("set-provider", application, "--method", "card", "--provider", "plutu")
    answer = mizan(*words, "--credentials", str(file))
    assert answer.exit_code == 1
    assert complaint in answer.stderr
    assert "token" not in answer.stderr.replace("access_token", "")


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 20_000,
        b'{"api_key": "a", "api_key": "b"}',
        b"\xff",
        b'{"api_key": "' + b"a" * 70_000 + b'"}',
        b"",
    ],
    ids=["deep", "a key twice", "no text", "long", "empty"],
)
def test_file_that_is_not_usable_json_is_refused(
    mizan: Mizan, application: str, file: Path, content: bytes
) -> None:
    file.write_bytes(content)
    words = ("set-provider", application, "--method", "card", "--provider", "plutu")
    answer = mizan(*words, "--credentials", str(file))
    assert answer.exit_code == 1
    assert answer.stderr == "Error: the credentials must be a JSON object of strings without duplicate keys\n"


def test_unknown_application_is_refused(mizan: Mizan, file: Path) -> None:
    nobody = "01a1dfbe-4931-7538-adb4-865b16c9c199"
    words = ("set-provider", nobody, "--method", "card", "--provider", "plutu")
    answer = mizan(*words, "--credentials", str(file))
    assert (answer.exit_code, answer.stderr) == (1, f"Error: there is no application {nobody}\n")
