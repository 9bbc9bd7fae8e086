"""Commands of operators are in the merchant's audit log, like actions of its members."""

import getpass
import json
from typing import Any
from uuid import uuid4

import pytest

from services.webhooks.intake import create_deliveries
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from tests.mizan.conftest import KEY, Mizan
from tests.webhooks.merchants import Merchant, webhook_events


def log_of(database: Database) -> list[tuple[str, dict[str, Any]]]:
    with database.cursor() as cursor:
        return cursor.execute("select action, details from audit_log order by id").fetchall()


@pytest.fixture
def application(mizan: Mizan, database: Database) -> dict[str, str]:
    """Return an application created by an operator, which has an audit log entry."""
    made: dict[str, str] = json.loads(
        mizan("create", "--name", " متجر ", "--methods", "sadad,card", "--json").stdout
    )
    return made


def test_every_change_is_in_the_audit_log_with_actor_and_details(
    mizan: Mizan, database: Database, application: dict[str, str]
) -> None:
    """In order, without secrets, and only if something changed."""
    app = application["application_id"]
    mizan("set-provider", app, "--method", "card", "--provider", "sandbox")
    mizan("set-webhook", app, "https://shop.example.ly/hook")
    rolled = json.loads(mizan("roll-secret", app, "--json").stdout)
    for command in ("pause-webhooks", "pause-webhooks", "resume-webhooks", "resume-webhooks"):
        mizan(command, app)
    key = json.loads(mizan("issue-key", app, "--json").stdout)
    token = json.loads(mizan("issue-token", app, "--json").stdout)
    for _ in range(2):
        mizan("revoke", app, key["credential_id"])
    mizan("set-webhook", app, "--none")
    assert log_of(database) == [
        ("application_created", {"name": "متجر", "methods": ["card", "sadad"], "url": None}),
        ("provider_set", {"method": "card", "adapter": "sandbox"}),
        ("webhook_url_set", {"url": "https://shop.example.ly/hook"}),
        ("webhook_secret_rolled", {"version": 2}),
        ("webhooks_paused", {}),
        ("webhooks_resumed", {}),
        ("credential_issued", {"kind": "api_key", "prefix": key["api_key"][:9]}),
        ("credential_issued", {"kind": "access_token", "prefix": token["access_token"][:9]}),
        ("credential_revoked", {"kind": "api_key", "prefix": key["api_key"][:9]}),
        ("webhook_url_removed", {}),
    ]
    with database.cursor() as cursor:
        whole = str(cursor.execute("select t::text from audit_log as t").fetchall())
        by = cursor.execute(
            """select distinct actor, member_id, application_id::text, merchant_id = (select id from merchants)
               from audit_log"""
        ).fetchall()
    assert by == [(f"operator {getpass.getuser()}", None, app, True)]
    secrets = [application["api_key"], application["access_token"], application["webhook_secret"]]
    for secret in [*secrets, key["api_key"], token["access_token"], rolled["webhook_secret"]]:
        assert secret not in whole


def test_refused_commands_are_not_in_the_audit_log(
    mizan: Mizan, database: Database, application: dict[str, str]
) -> None:
    app = application["application_id"]
    before = log_of(database)
    for words in (
        ["create", "--name", ""],
        ["set-webhook", app, "https://10.0.0.1/"],
        ["set-webhook", str(uuid4()), "--none"],
        ["pause-webhooks", str(uuid4())],
        ["revoke", app, "nothing"],
        ["issue-key", str(uuid4())],
    ):
        assert mizan(*words).exit_code == 1
    assert log_of(database) == before


def test_resend_is_in_the_audit_log(run: Mizan, database: Database) -> None:
    merchant = Merchant(database, SecretBox((KEY,)), "https://shop.example/hooks")
    delivery_id = merchant.create_event()
    with database.cursor() as cursor:
        create_deliveries(cursor, webhook_events(database))
    assert run("resend", str(uuid4())).exit_code == 1
    assert run("resend", str(delivery_id)).exit_code == 0
    assert log_of(database) == [("delivery_resent", {"delivery": str(delivery_id)})]


def test_an_operator_without_a_name_is_recorded_as_unknown(
    mizan: Mizan, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of a container may have no passwd entry."""

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert mizan("create", "--name", "shop").exit_code == 0
    with database.cursor() as cursor:
        ((actor,),) = cursor.execute("select actor from audit_log").fetchall()
    assert actor == "operator unknown"
