"""Commands of operators are in the merchant's audit log, like actions of its members."""

import json
import os
import platform
import pwd
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mizan import command_context
from mizan.command_context import acting_operator, find_container_id
from services.webhooks.pipeline.intake import create_deliveries
from shared.domain.accounts.operators import add_operator
from shared.domain.audit_log import list_entries, list_operator_entries
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.encryption import SecretBox
from shared.platform.tokens import token_prefix
from tests.mizan.conftest import KEY, Mizan
from tests.webhooks.merchants import Merchant, webhook_events

CONTAINER = "4f2a" * 16


def mount(source: str, target: str = "/etc/hostname") -> str:
    """Return a line of /proc/self/mountinfo."""
    return f"612 590 8:1 {source} {target} rw,relatime - ext4 /dev/sda1 rw\n"


def log_of(database: Database) -> list[tuple[str, dict[str, Any]]]:
    with database.cursor() as cursor:
        return cursor.execute("select action, details from audit_log order by id").fetchall()


def actors(database: Database) -> list[tuple[str, str, str | None]]:
    with database.cursor() as cursor:
        return cursor.execute("select actor, address, operator_id from audit_log order by id").fetchall()


@pytest.fixture
def application(mizan: Mizan, database: Database) -> dict[str, str]:
    """Return an application created by an operator, which has an audit log entry."""
    made: dict[str, str] = json.loads(
        mizan("create", "--name", " متجر ", "--methods", "sadad,card", "--live", "--json").stdout
    )
    return made


def test_every_change_is_in_the_audit_log_with_actor_and_details(
    mizan: Mizan, database: Database, application: dict[str, str], tmp_path: Path
) -> None:
    """In order, without secrets, and only if something changed."""
    app = application["application_id"]
    credentials = tmp_path / "credentials.json"
    credentials.write_text('{"api_key": "hush", "access_token": "hush", "secret_key": "hush"}')
    words = ("set-provider", app, "--method", "card", "--provider", "plutu")
    mizan(*words, "--credentials", str(credentials))
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
        ("application_created", {"name": "متجر", "mode": "live", "methods": ["card", "sadad"], "url": None}),
        ("provider_set", {"method": "card", "adapter": "plutu"}),
        ("webhook_url_set", {"url": "https://shop.example.ly/hook"}),
        ("webhook_secret_rolled", {"version": 2}),
        ("webhooks_paused", {}),
        ("webhooks_resumed", {}),
        ("credential_issued", {"kind": "api_key", "prefix": token_prefix(key["api_key"])}),
        ("credential_issued", {"kind": "access_token", "prefix": token_prefix(token["access_token"])}),
        ("credential_revoked", {"kind": "api_key", "prefix": token_prefix(key["api_key"])}),
        ("webhook_url_removed", {}),
    ]
    with database.cursor() as cursor:
        whole = str(cursor.execute("select t::text from audit_log as t").fetchall())
        by = cursor.execute(
            """select distinct actor, member_id, application_id::text, merchant_id = (select id from merchants)
               from audit_log"""
        ).fetchall()
    uid = os.getuid()
    assert by == [(f"cli operator {pwd.getpwuid(uid).pw_name} (uid {uid})", None, app, True)]
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


@pytest.fixture
def in_a_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let the process seem to run on the host `pay-1` in a container."""
    (tmp_path / "cgroup").write_text("0::/\n")
    (tmp_path / "mountinfo").write_text(mount(f"/var/lib/docker/containers/{CONTAINER}/hostname"))
    monkeypatch.setattr(command_context, "_PROC", tmp_path)
    monkeypatch.setattr(platform, "node", lambda: "pay-1")


@pytest.mark.usefixtures("in_a_container")
def test_actor_is_the_uid_of_the_process_whatever_the_environment_says(
    mizan: Mizan, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator of the monitor with the same name is somebody else."""
    with database.transaction() as connection:
        add_operator(connection, "mona@example.ly", "correct horse battery staple")
    entry = pwd.struct_passwd(("mona@example.ly", "x", 4711, 4711, "", "/", "/bin/sh"))
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    monkeypatch.setattr(pwd, "getpwuid", {4711: entry}.__getitem__)
    claims = dict.fromkeys(("LOGNAME", "USER", "LNAME", "USERNAME", "SUDO_USER", "HOSTNAME"), "root")
    assert mizan("create", "--name", "shop", **claims).exit_code == 0
    assert actors(database) == [
        ("cli operator mona@example.ly (uid 4711)", f"pay-1, container {CONTAINER[:12]}", None)
    ]


@pytest.mark.usefixtures("in_a_container")
def test_merchants_do_not_see_the_host_of_the_command_line(mizan: Mizan, database: Database) -> None:
    assert mizan("create", "--name", "shop").exit_code == 0
    with database.transaction() as connection:
        merchant_id = fetch_scalar(connection, "select id from merchants")
        (shown,) = list_entries(connection, merchant_id, before=None, limit=10)
        (for_operators,) = list_operator_entries(connection, before=None, limit=10)
    assert (shown.actor, shown.address) == (for_operators.actor, None)
    assert for_operators.address == f"pay-1, container {CONTAINER[:12]}"


def test_an_operator_without_a_name_is_recorded_by_uid(
    mizan: Mizan, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user of a container may have no passwd entry."""
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert mizan("create", "--name", "shop").exit_code == 0
    assert [actor for actor, *_ in actors(database)] == [f"cli operator (uid {os.getuid()})"]


def test_strange_names_of_users_and_hosts_are_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = pwd.struct_passwd(("mo\x1b[2Jna", "x", 1, 1, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: entry)
    assert "\x1b" not in acting_operator().name
    monkeypatch.setattr(platform, "node", lambda: "")
    assert (acting_operator().address or "").startswith("unknown host")


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "found"),
    [
        ("0::/user.slice/user-1000.slice/session-2.scope\n", "", None),
        ("", "", None),
        (f"12:pids:/docker/{CONTAINER}\n", "", CONTAINER),  # Docker, control groups v1
        (f"0::/system.slice/docker-{CONTAINER}.scope\n", "", CONTAINER),  # control groups of the host
        (f"0::/kubepods.slice/pod1.slice/cri-containerd-{CONTAINER}.scope\n", "", CONTAINER),
        ("0::/\n", mount(f"/var/lib/docker/containers/{CONTAINER}/hostname"), CONTAINER),
        (
            "0::/\n",
            mount(f"/containers/overlay-containers/{CONTAINER}/userdata/hostname"),
            CONTAINER,
        ),  # Podman
        ("0::/\n", mount(f"/io.containerd.grpc.v1.cri/sandboxes/{CONTAINER}/hostname"), CONTAINER),
        ("0::/\n", mount("/var/lib/lxc/hostname"), None),
        # The host of containers, which sees what is mounted for them.
        ("0::/init.scope\n", mount("/", f"/var/lib/docker/containers/{CONTAINER}/mounts/shm"), None),
    ],
)
def test_container_id_is_found(cgroup: str, mountinfo: str, found: str | None) -> None:
    assert find_container_id(cgroup, mountinfo) == found
