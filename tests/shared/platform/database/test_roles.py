"""Preparing roles: repeatable, side by side, and for an installation that has none yet."""

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner

from mizan.__main__ import main
from shared.platform.database import roles
from shared.platform.database.privileges import PrivilegeFaults, find_privilege_faults
from shared.platform.database.roles import OWNER, ROLE_NAMES, SERVICE_ROLES, own_database, prepare_roles
from shared.platform.migrations.runner import migrate
from tests.database_roles import password_of, url_as
from tests.engines import TestEngines

# As the version before roles left it: all objects of another role, and no rights for anybody.
_TAKE_BACK = f"""
do $$ declare found record; begin
    for found in select format('alter %s %s owner to %I', case relkind when 'S' then 'sequence' else 'table' end,
                               oid::regclass, current_user) as statement
                 from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') loop
        execute found.statement;
    end loop;
    for found in select format('alter function %s owner to %I', oid::regprocedure, current_user) as statement
                 from pg_proc where pronamespace = 'public'::regnamespace loop
        execute found.statement;
    end loop;
    revoke all on all tables in schema public from {", ".join(role.name for role in SERVICE_ROLES)};
    update alembic_version set version_num = '0021';
end $$"""


@dataclass(frozen=True)
class Server:
    """A database of its own on the server of the tests, with the connection of its administrator."""

    url: str
    admin_url: str


@pytest.fixture(params=["superuser", "administrator"])
def server(request: pytest.FixtureRequest, engines: TestEngines) -> Iterator[Server]:
    """A database that belongs to a superuser or, as on a managed server, to a role that may create roles."""
    name, admin = f"mizan_{uuid4().hex[:12]}", f"admin_{uuid4().hex[:8]}"
    attribute = "superuser" if request.param == "superuser" else "createrole createdb"
    with psycopg.connect(engines.database_url, autocommit=True) as connection:
        connection.execute(f"create role {admin} login {attribute} password 'of-a-test'".encode())
        if attribute != "superuser":  # it has created the roles itself, so it may change them
            for role in ROLE_NAMES:
                connection.execute(
                    f"grant {role} to {admin} with admin true, inherit false, set false".encode()
                )
        connection.execute(f'create database "{name}" owner {admin}'.encode())
        parts = psycopg.conninfo.conninfo_to_dict(engines.database_url)
        yield Server(
            url_as(OWNER, engines.database_url, name),
            f"postgresql://{admin}:of-a-test@{parts['host']}:{parts['port']}/{name}",
        )
        connection.execute(f'drop database "{name}" with (force)'.encode())
        connection.execute(f"reassign owned by {admin} to current_user; drop owned by {admin}".encode())
        connection.execute(f"drop role {admin}".encode())


def run_roles(server: Server, *options: str) -> str:
    result = CliRunner().invoke(main, ["roles", *options], env={"DATABASE_ADMIN_URL": server.admin_url})
    assert result.exit_code == 0, result.output
    return result.output


def faults(url: str) -> PrivilegeFaults:
    with psycopg.connect(url) as connection:
        return find_privilege_faults(connection)


def test_new_installation_is_prepared_and_migrated(server: Server) -> None:
    assert f"{OWNER} now owns 1 more objects" in run_roles(server)
    migrate(server.url)
    run_roles(server, "--finish")
    assert faults(server.url) == PrivilegeFaults((), ())


def test_installation_without_roles_moves_over_while_its_services_run(server: Server) -> None:
    """Rows stay, a session of the earlier role goes on working, and at the end nothing is too wide or missing."""
    run_roles(server)
    migrate(server.url)
    with psycopg.connect(server.admin_url, autocommit=True) as earlier:
        earlier.execute(f"grant {OWNER} to current_user".encode())
        earlier.execute(_TAKE_BACK.encode())
        earlier.execute("insert into merchants (name) values ('Tripoli Coffee')")
        assert faults(server.url).too_wide
        assert "more objects" in run_roles(server)
        migrate(server.url)
        earlier.execute("insert into merchants (name) values ('Benghazi Books')")
    assert "more objects" not in run_roles(server, "--finish")
    with psycopg.connect(server.url) as connection:
        assert connection.execute("select count(*) from merchants").fetchone() == (2,)
    assert faults(server.url) == PrivilegeFaults((), ())


def test_objects_in_use_are_waited_for_briefly(
    engines: TestEngines, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody else who needs the table would queue behind a longer wait."""
    run_roles(server)
    with psycopg.connect(server.admin_url, autocommit=True) as admin:
        admin.execute(
            f"grant create on schema public to current_user; grant {OWNER} to current_user".encode()
        )
        admin.execute("create table earlier (id int)")
        monkeypatch.setattr(roles, "_LOCK_TIMEOUT", "10ms")
        monkeypatch.setattr(roles, "_PAUSE_S", 0.0)
        with psycopg.connect(server.admin_url) as user:
            user.execute("lock table earlier in access share mode")
            monkeypatch.setattr(roles, "_TRIES", 3)
            with pytest.raises(psycopg.errors.LockNotAvailable):
                own_database(admin)
        assert own_database(admin) == ["table public.earlier"]


def test_roles_can_be_prepared_by_several_at_once(engines: TestEngines) -> None:
    passwords = {name: password_of(name) for name in ROLE_NAMES}

    def prepare(_: int) -> None:
        with closing(psycopg.connect(engines.database_url, autocommit=True)) as connection:
            connection.execute("set scram_iterations = 1")
            prepare_roles(connection, passwords)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(prepare, range(4)))


def test_wider_attributes_and_shorter_settings_are_corrected(engines: TestEngines) -> None:
    with psycopg.connect(engines.database_url, autocommit=True) as connection:
        connection.execute("alter role mizan_monitor createdb createrole nologin")
        connection.execute("alter role mizan_monitor set statement_timeout = 0")
        prepare_roles(connection, {})
        row = connection.execute(
            "select rolcreatedb, rolcreaterole, rolcanlogin, rolconfig from pg_roles where rolname = 'mizan_monitor'"
        ).fetchone()
    assert row is not None
    assert row[:3] == (False, False, True)
    assert "statement_timeout=1min" in row[3]


def test_migration_without_roles_says_what_to_run(
    engines: TestEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A managed server's owner may not create roles."""
    missing = roles.ServiceRole(f"mizan_missing_{secrets.token_hex(4)}")
    monkeypatch.setattr(roles, "SERVICE_ROLES", (missing,))
    with (
        psycopg.connect(url_as(OWNER, engines.database_url, "postgres"), autocommit=True) as connection,
        pytest.raises(roles.MissingRolesError) as refused,
    ):
        roles.create_missing_roles(connection)
    assert "mizan roles" in str(refused.value)
    assert f"create role {missing.name} login;" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "must contain a JSON object"),
        ('{"mizan_api": 5}', "must contain a JSON object"),
        ('{"mizan_apl": "x"}', "unknown roles: mizan_apl"),
    ],
)
def test_passwords_file_that_cannot_be_used_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "passwords"
    path.write_text(content)
    environment = {"DATABASE_ADMIN_URL": "postgresql://nobody@127.0.0.1:1/nothing"}
    result = CliRunner().invoke(main, ["roles", "--passwords-file", str(path)], env=environment)
    assert result.exit_code == 1
    assert reason in result.output


def test_administrators_connection_is_required_unless_it_is_optional() -> None:
    environment = {"DATABASE_ADMIN_URL": None, "DATABASE_ADMIN_URL_FILE": None}
    refused = CliRunner().invoke(main, ["roles"], env=environment)
    assert (refused.exit_code, "DATABASE_ADMIN_URL" in refused.output) == (1, True)
    skipped = CliRunner().invoke(main, ["roles", "--optional"], env=environment)
    assert (skipped.exit_code, "stay as they are" in skipped.output) == (0, True)


def test_passwords_of_a_file_are_set(engines: TestEngines, tmp_path: Path) -> None:
    path, password = tmp_path / "passwords", secrets.token_urlsafe(24)
    path.write_text(json.dumps({"mizan_cli": password}))
    parts = psycopg.conninfo.conninfo_to_dict(engines.database_url)
    url = f"postgresql://mizan_cli:{password}@{parts['host']}:{parts['port']}/postgres"
    try:
        run_roles(Server("", engines.database_url), "--passwords-file", str(path))
        psycopg.connect(url).close()
    finally:
        with psycopg.connect(engines.database_url) as connection:
            connection.execute("set scram_iterations = 1")
            connection.execute(f"alter role mizan_cli password '{password_of('mizan_cli')}'".encode())
