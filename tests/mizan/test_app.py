"""`mizan app` as called by an operator or a script."""

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.tokens import hash_token, token_prefix
from stack.ports import find_free_ports
from tests.clock import Clock
from tests.constants import UNKNOWN_ID
from tests.mizan.conftest import KEY, Mizan


def _create(mizan: Mizan, *words: str, name: str = "shop") -> dict[str, str]:
    answer = mizan("create", "--name", name, "--json", *words)
    assert answer.exit_code == 0, answer.stderr
    made: dict[str, str] = json.loads(answer.stdout)
    return made


def test_create_prints_id_and_credentials_as_json(mizan: Mizan, database: Database) -> None:
    """Exactly the four names that scripts rely on, and each value works."""
    made = _create(mizan)
    assert list(made) == ["application_id", "api_key", "access_token", "webhook_secret"]
    with database.transaction() as connection:
        kinds = connection.execute(
            "select kind, hash from credentials where application_id = %s order by kind",
            (made["application_id"],),
        ).fetchall()
        secret = connection.execute("select id from applications").fetchone()
        assert secret is not None
        assert (
            decrypt_webhook_secret(connection, SecretBox((KEY,)), secret[0], 1).text == made["webhook_secret"]
        )
    assert kinds == [
        ("access_token", hash_token(made["access_token"])),
        ("api_key", hash_token(made["api_key"])),
    ]


def test_create_prints_that_credentials_are_shown_once(mizan: Mizan) -> None:
    """Without --json: one line each, then the note."""
    answer = mizan("create", "--name", "متجر")
    names = [line.split()[0] for line in answer.stdout.splitlines()[:4]]
    assert names == ["application_id", "api_key", "access_token", "webhook_secret"]
    assert "shown once" in answer.stdout.splitlines()[4]


def test_applications_are_listed_oldest_first(mizan: Mizan) -> None:
    """With methods, merchant and webhook URL."""
    assert json.loads(mizan("list", "--json").stdout)["applications"] == []
    assert "no applications yet" in mizan("list").stdout
    first = _create(mizan, name="متجر")
    options = (
        "--methods",
        "adfali, card",
        "--merchant",
        "متجر",
        "--webhook-url",
        "https://shop.example.ly/hook",
    )
    second = _create(mizan, *options, "--live", name="second")
    listed = json.loads(mizan("list", "--json").stdout)["applications"]
    assert [row["application_id"] for row in listed] == [first["application_id"], second["application_id"]]
    assert listed[0]["methods"] == ["card", "sadad", "adfali"]
    assert [row["mode"] for row in listed] == ["test", "live"]
    assert first["api_key"].startswith("pk_test_")
    assert second["api_key"].startswith("pk_live_")
    assert listed[0]["webhook_url"] is None
    assert {
        name: listed[1][name] for name in ("name", "merchant", "merchant_id", "methods", "webhook_url")
    } == {
        "name": "second",
        "merchant": "متجر",
        "merchant_id": listed[0]["merchant_id"],
        "methods": ["card", "adfali"],
        "webhook_url": "https://shop.example.ly/hook",
    }
    by_id = _create(mizan, "--merchant", listed[0]["merchant_id"], name="third")
    header, *lines = mizan("list").stdout.splitlines()
    assert header.split()[:3] == ["application_id", "created_at", "methods"]
    assert "card,adfali" in lines[1]
    assert lines[2].split()[0] == by_id["application_id"]
    assert listed[0]["merchant_id"] in lines[2]


def test_the_webhook_url_is_set_and_removed(mizan: Mizan) -> None:
    """§6.1, from the command line; a private URL only if development allows it."""
    app = _create(mizan)["application_id"]

    def url() -> str | None:
        value: str | None = json.loads(mizan("list", "--json").stdout)["applications"][0]["webhook_url"]
        return value

    assert mizan("set-webhook", app, "https://shop.example.ly/hook").exit_code == 0
    assert url() == "https://shop.example.ly/hook"
    refused = mizan("set-webhook", app, "http://127.0.0.1:8008/hook")
    assert (refused.exit_code, url()) == (1, "https://shop.example.ly/hook")
    assert "must begin with https://" in refused.stderr
    mizan("set-webhook", app, "http://127.0.0.1:8008/hook", WEBHOOK_ALLOW_PRIVATE="true")
    assert url() == "http://127.0.0.1:8008/hook"
    assert mizan("set-webhook", app, "--none").exit_code == 0
    assert url() is None


@pytest.mark.parametrize("words", [[], ["https://shop.example.ly/", "--none"]])
def test_set_webhook_needs_either_a_url_or_the_option_none(mizan: Mizan, words: list[str]) -> None:
    """Forgetting the URL does not remove the current one."""
    app = _create(mizan, "--webhook-url", "https://shop.example.ly/hook")["application_id"]
    answer = mizan("set-webhook", app, *words)
    assert answer.exit_code == 2
    assert "either a URL or --none" in answer.stderr
    assert (
        json.loads(mizan("list", "--json").stdout)["applications"][0]["webhook_url"]
        == "https://shop.example.ly/hook"
    )


def test_roll_secret_prints_the_new_secret_and_its_version(mizan: Mizan) -> None:
    """§6.1: the new one is shown once."""
    made = _create(mizan)
    rolled = json.loads(mizan("roll-secret", made["application_id"], "--json").stdout)
    assert list(rolled) == ["application_id", "webhook_secret", "version"]
    assert (rolled["application_id"], rolled["version"]) == (made["application_id"], 2)
    assert rolled["webhook_secret"].startswith("whsec_")
    assert rolled["webhook_secret"] != made["webhook_secret"]
    assert "shown once" in mizan("roll-secret", made["application_id"]).stdout


def test_credentials_are_issued_and_listed(mizan: Mizan) -> None:
    """The list shows only prefixes; times are UTC with Z."""
    app = _create(mizan)["application_id"]
    key = json.loads(mizan("issue-key", app, "--json").stdout)
    token = json.loads(mizan("issue-token", app, "--json").stdout)
    assert list(key) == ["application_id", "credential_id", "api_key"]
    assert list(token) == ["application_id", "credential_id", "access_token"]
    listed = json.loads(mizan("credentials", app, "--json").stdout)["credentials"]
    assert [row["kind"] for row in listed] == ["api_key", "access_token", "api_key", "access_token"]
    assert list(listed[2]) == ["id", "kind", "prefix", "created_at", "last_used_at", "revoked_at"]
    assert (listed[2]["id"], listed[2]["prefix"]) == (key["credential_id"], token_prefix(key["api_key"]))
    assert listed[2]["created_at"].endswith("Z")
    assert listed[2]["last_used_at"] is listed[2]["revoked_at"] is None
    table = mizan("credentials", app).stdout
    assert token_prefix(token["access_token"]) in table
    assert token["access_token"] not in table
    assert (
        len({line.index(row["prefix"]) for line, row in zip(table.splitlines()[1:], listed, strict=True)})
        == 1
    )


def test_a_credential_is_revoked_once(mizan: Mizan, clock: Clock) -> None:
    """Revoking again succeeds and says so; an ambiguous prefix lists the candidates and revokes none."""
    made = _create(mizan)
    app, prefix = made["application_id"], token_prefix(made["api_key"])
    second = json.loads(mizan("issue-key", app, "--json").stdout)
    ambiguous = mizan("revoke", app, "pk_")
    assert ambiguous.exit_code == 1
    assert prefix in ambiguous.stderr
    assert second["credential_id"] in ambiguous.stderr
    assert all(
        row["revoked_at"] is None
        for row in json.loads(mizan("credentials", app, "--json").stdout)["credentials"]
    )
    assert mizan("revoke", app, prefix).stdout.endswith("is revoked\n")
    before = json.loads(mizan("credentials", app, "--json").stdout)["credentials"]
    clock.advance(timedelta(days=1))
    again = mizan("revoke", app, before[0]["id"])
    assert (again.exit_code, again.stdout.endswith("was already revoked\n")) == (0, True)
    assert json.loads(mizan("credentials", app, "--json").stdout)["credentials"] == before
    assert [row["revoked_at"] is None for row in before] == [False, True, True]


@pytest.mark.parametrize(
    "words",
    [
        ["set-webhook", "{app}", "https://shop.example.ly/"],
        ["set-webhook", "{app}", "--none"],
        ["roll-secret", "{app}"],
        ["credentials", "{app}"],
        ["issue-key", "{app}"],
        ["issue-token", "{app}"],
        ["revoke", "{app}", "pk_"],
        ["pause-webhooks", "{app}"],
        ["resume-webhooks", "{app}"],
    ],
)
def test_unknown_or_malformed_application_is_one_clear_line(mizan: Mizan, words: list[str]) -> None:
    """For every command that takes APP."""
    for app, told in (
        (UNKNOWN_ID, "there is no application"),
        ("shop", "APP must be an application's id"),
        ("", "APP must be an application's id"),
        ("{" + UNKNOWN_ID + "}", "APP must be an application's id"),
        ("pk_hush\x00\udcff", "APP must be an application's id"),
    ):
        answer = mizan(*(app if word == "{app}" else word for word in words))
        assert answer.exit_code == 1, app
        assert told in answer.stderr
        assert answer.stderr.count("\n") == 1
        assert "hush" not in answer.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--name", ""], "application's name must have 1 to 200"),
        (["--name", "x" * 201], "application's name must have 1 to 200"),
        (["--name", "a\x00"], "application's name must not have"),
        (["--name", "a\udcff"], "application's name must not have"),
        (["--name", "shop", "--merchant", ""], "merchant's name must have 1 to 200"),
        (["--name", "shop", "--merchant", "\udcff"], "merchant's name must not have"),
        (["--name", "shop", "--merchant", str(uuid4())], "there is no merchant"),
        (["--name", "shop", "--webhook-url", ""], "must begin with https://"),
        (["--name", "shop", "--webhook-url", "https://shop.example.ly/\udcff"], "has the character"),
        (["--name", "shop", "--webhook-url", "https://10.0.0.1/"], "public address"),
    ],
)
def test_invalid_arguments_of_create_are_refused_before_anything_is_created(
    mizan: Mizan, words: list[str], told: str
) -> None:
    """With one clear line and exit code 1."""
    answer = mizan("create", *words)
    assert answer.exit_code == 1
    assert told in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert json.loads(mizan("list", "--json").stdout)["applications"] == []


@pytest.mark.parametrize("methods", ["", "card,", "paypal", "card,\udcff", "CARD"])
def test_unknown_method_is_a_usage_error(mizan: Mizan, methods: str) -> None:
    """It names all three methods."""
    answer = mizan("create", "--name", "shop", "--methods", methods)
    assert answer.exit_code == 2
    assert "card,sadad,adfali" in answer.stderr


@pytest.mark.parametrize("command", ["create", "roll-secret"])
def test_no_secret_is_created_without_secret_keys(mizan: Mizan, command: str) -> None:
    """The message names the setting and the command that makes a key."""
    app = _create(mizan)["application_id"]
    words = ["--name", "second"] if command == "create" else [app]
    answer = mizan(command, *words, MIZAN_SECRET_KEYS="")
    assert answer.exit_code == 1
    assert "MIZAN_SECRET_KEYS" in answer.stderr
    assert "mizan keys new" in answer.stderr
    assert len(json.loads(mizan("list", "--json").stdout)["applications"]) == 1


def test_database_error_is_one_clear_line(mizan: Mizan, database: Database) -> None:
    """It is unavailable, refuses the query, or is older than this code: exit code 1, no password."""
    nobody = find_free_ports(1)[0]
    away = mizan("list", DATABASE_URL=f"postgresql://mizan:hush@127.0.0.1:{nobody}/x")
    with database.transaction() as connection:
        connection.execute("alter table application_methods rename to hidden")
    refused = mizan("list")
    with database.transaction() as connection:
        connection.execute("update alembic_version set version_num = '0001'")
    outdated = mizan("list")
    for answer, told in [
        (away, "Connection refused"),
        (refused, "application_methods"),
        (outdated, "mizan migrate"),
    ]:
        assert answer.exit_code == 1
        assert told in answer.stderr
        assert answer.stderr.count("\n") == 1
        assert "hush" not in answer.stderr


def test_launcher_refuses_arguments_that_are_not_utf_8(
    repository_root: Path, environment: dict[str, str]
) -> None:
    """As sent by a terminal with another encoding, through the real process."""
    command = [os.fsencode(repository_root / "bin" / "mizan"), b"app", b"create", b"--json", b"--name"]
    answers = [
        subprocess.run([*command, name], env=environment, capture_output=True, text=True, check=False)
        for name in ("متجر".encode(), b"caf\xe9")
    ]
    assert json.loads(answers[0].stdout)["api_key"].startswith("pk_")
    assert answers[1].returncode == 1
    assert answers[1].stderr.startswith("Error: the application's name must not have")
