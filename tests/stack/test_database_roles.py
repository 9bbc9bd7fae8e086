"""The addresses of the database that the programs of a stack get."""

import json
from pathlib import Path

import psycopg
import pytest

from shared.platform.database.privileges import PrivilegeFaults, find_privilege_faults
from shared.platform.database.roles import OWNER, ROLE_NAMES
from shared.platform.migrations.runner import migrate
from stack.database_roles import (
    NO_DATABASE,
    RoleUrls,
    ensure_role_passwords,
    external_urls,
    prepare_embedded_roles,
    urls_with_passwords,
)
from stack.engines import EmbeddedPostgres
from stack.errors import StackError
from stack.ports import find_free_ports
from stack.postgres import Postgres
from stack.services import JOBS, SERVICES, SHOP
from stack.watchdog import Watchdog


def test_every_program_has_the_role_of_its_service() -> None:
    """The shop is a merchant's and the sandbox a bank's: they have no database of ours."""
    roles = {service.name: service.database_role for service in (*SERVICES, SHOP)}
    assert roles == {
        **{
            name: f"mizan_{name}"
            for name in ("api", "checkout", "dashboard", "webhooks", "scheduler", "monitor")
        },
        "checkout-verifier": "mizan_checkout",
        "sandbox": None,
        "shop": None,
    }
    assert {job.name: job.database_role for job in JOBS} == {"migrate": OWNER, "topics": None}


def test_passwords_are_made_once_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "role_passwords"
    made = ensure_role_passwords(path)
    assert made.keys() == set(ROLE_NAMES)
    assert len(set(made.values())) == len(made)
    assert ensure_role_passwords(path) == made
    assert path.stat().st_mode & 0o777 == 0o600


def test_address_of_a_role_differs_in_its_login_only() -> None:
    url = "postgresql://mizan:h%2Fx@db1:5433,db2:5434/pay?sslmode=require"
    assert urls_with_passwords(url, {"mizan_api": "p@ss"}) == {
        "mizan_api": "postgresql://mizan_api:p%40ss@db1:5433,db2:5434/pay?sslmode=require"
    }


def test_address_of_a_program_is_a_private_file(tmp_path: Path) -> None:
    urls = RoleUrls({"mizan_api": "postgresql://mizan_api@db/mizan"}, tmp_path / "urls")
    own, none = (Path(urls.environment(role)["DATABASE_URL_FILE"]) for role in ("mizan_api", None))
    assert own.read_text() == "postgresql://mizan_api@db/mizan\n"
    assert none.read_text().strip() == NO_DATABASE
    assert (own.stat().st_mode & 0o077, own.parent.stat().st_mode & 0o077) == (0, 0)


def test_external_database_is_used_with_the_given_passwords_or_with_one_login(tmp_path: Path) -> None:
    url, file = "postgresql://mizan:x@db/mizan", tmp_path / "passwords"
    assert set(external_urls(url, None).values()) == {url}
    file.write_text(json.dumps({name: f"of-{name}" for name in ROLE_NAMES}))
    assert external_urls(url, str(file))["mizan_cli"] == "postgresql://mizan_cli:of-mizan_cli@db/mizan"
    for content in ('{"mizan_api": "x"}', "[]", "{", json.dumps(dict.fromkeys(ROLE_NAMES, 5))):
        file.write_text(content)
        with pytest.raises(StackError, match="DATABASE_ROLE_PASSWORDS_FILE"):
            external_urls(url, str(file))


def test_new_and_repeated_start_of_the_embedded_server_gives_the_database_to_its_owner(
    tmp_path: Path,
) -> None:
    """Nothing is too wide and nothing is missing after the migrations, which the owner runs."""
    server = Postgres(tmp_path / "postgres", find_free_ports(1)[0], durable=False)
    server.prepare()
    passwords = ensure_role_passwords(tmp_path / "role_passwords")
    owner = urls_with_passwords(server.url, passwords)[OWNER]
    watchdog = Watchdog()
    running = EmbeddedPostgres(server, log=tmp_path / "log", watchdog=watchdog)
    running.start()
    try:
        for _ in range(2):
            prepare_embedded_roles(server.url, passwords)
            migrate(owner)
        with psycopg.connect(owner) as connection:
            assert find_privilege_faults(connection) == PrivilegeFaults((), ())
    finally:
        running.kill()
        watchdog.stop()
