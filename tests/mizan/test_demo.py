"""`mizan demo`: created once, found again, stored in a private file, and refused in production."""

import json
from pathlib import Path
from typing import Any

import pytest

from shared.domain.accounts.passwords import is_password
from shared.platform.database.pool import Database
from tests.mizan.conftest import Mizan

_SHOP = "http://127.0.0.1:8008/webhooks/mizan"
_MOVED = "http://127.0.0.1:9008/webhooks/mizan"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "demo.json"


def make(run: Mizan, file: Path, url: str = _SHOP) -> dict[str, str]:
    done = run("demo", "--file", str(file), "--webhook-url", url, WEBHOOK_ALLOW_PRIVATE="true")
    assert done.exit_code == 0, done.stderr
    known: dict[str, str] = json.loads(file.read_text())
    return known


def rows(database: Database, query: str) -> list[Any]:
    with database.cursor() as cursor:
        return cursor.execute(query).fetchall()


def webhook_urls(database: Database) -> list[str | None]:
    return [row[0] for row in rows(database, "select webhook_url from applications order by id")]


def test_second_call_reuses_the_demo_of_the_first(run: Mizan, file: Path, database: Database) -> None:
    made = make(run, file)
    credentials = {"application_id", "api_key", "access_token", "webhook_secret", "webhook_url"}
    people = {"owner_email", "owner_password", "operator_email", "operator_password"}
    assert set(made) == credentials | people
    assert file.stat().st_mode & 0o777 == 0o600
    assert make(run, file) == made
    everything = "select a.id from merchants join applications as a on true join members on true join operators on true"
    assert len(rows(database, everything)) == 1


def test_webhook_url_follows_the_shop_unless_it_was_changed_by_hand(
    run: Mizan, file: Path, database: Database
) -> None:
    application = make(run, file)["application_id"]
    assert make(run, file, _MOVED)["webhook_url"] == _MOVED
    assert webhook_urls(database) == [_MOVED]
    run("app", "set-webhook", application, "https://shop.example/hook")
    assert make(run, file)["webhook_url"] == _MOVED
    assert webhook_urls(database) == ["https://shop.example/hook"]
    run("app", "set-webhook", application, "--none")
    make(run, file)
    assert webhook_urls(database) == [None]


def test_file_of_an_earlier_version_is_completed(run: Mizan, file: Path, database: Database) -> None:
    """It has neither an operator nor a webhook URL."""
    made = make(run, file)
    run("app", "set-webhook", made["application_id"], "--none")
    earlier = {key: made[key] for key in made if key != "webhook_url" and not key.startswith("operator")}
    file.write_text(json.dumps(earlier))
    again = make(run, file)
    assert {key: again[key] for key in earlier} == earlier
    assert again["operator_password"] != made["operator_password"]
    assert webhook_urls(database) == [_SHOP]


@pytest.mark.parametrize("content", [None, "", "[]", '{"application_id": "x"}', '{"api_key": "pk_1"}'])
def test_lost_or_invalid_file_is_rewritten_for_the_same_application(
    run: Mizan, file: Path, database: Database, content: str | None
) -> None:
    made = make(run, file)
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    again = make(run, file, _MOVED)
    assert again["application_id"] == made["application_id"]
    assert again["webhook_secret"] != made["webhook_secret"]
    assert webhook_urls(database) == [_MOVED]


def test_removed_demo_works_again_after_the_next_call(run: Mizan, file: Path, database: Database) -> None:
    """The same application gets new credentials, and its accounts are restored."""
    made = make(run, file)
    assert run("remove-demo").exit_code == 0
    again = make(run, file)
    assert again["application_id"] == made["application_id"]
    for name in ("api_key", "access_token", "owner_password", "operator_password"):
        assert again[name] != made[name]
    assert webhook_urls(database) == [_SHOP]
    assert make(run, file) == again


def test_demo_owner_with_an_account_elsewhere_gets_the_password_of_the_file(
    run: Mizan, file: Path, database: Database
) -> None:
    """Any merchant can have a member with that address."""
    run("user", "create", "--email", "owner@demo.example", "--role", "viewer", "--merchant", "Another")
    password = make(run, file)["owner_password"]
    ((hashed,),) = rows(database, "select password_hash from users")
    assert is_password(hashed, password)


def test_demo_is_refused_in_production(run: Mizan, file: Path, database: Database) -> None:
    refused = run("demo", "--file", str(file), MIZAN_ENV="production")
    assert refused.exit_code != 0
    assert not file.exists()
    assert rows(database, "select from applications") == []
