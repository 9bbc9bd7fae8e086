"""The login roles of PostgreSQL: an owner for migrations and one role for each service; and how to prepare them.

Roles belong to the whole server, so an administrator (or the embedded stack) prepares them, before `mizan migrate`.
What each service's role may do is granted by the migrations; privileges.py compares it with what it shall be.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection, sql
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

OWNER = "mizan_owner"
CLI = "mizan_cli"


class MissingRolesError(Exception):
    """Roles are missing and this connection may not create them; the text says what to run."""


@dataclass(frozen=True, slots=True)
class ServiceRole:
    """A role and its time limits, for connections that do not set their own: a stolen password, a tool."""

    name: str
    statement_timeout: str = "1min"
    idle_in_transaction: str = "1min"
    idle_session: str = "1h"

    @property
    def settings(self) -> dict[str, str]:
        return {
            "statement_timeout": self.statement_timeout,
            "idle_in_transaction_session_timeout": self.idle_in_transaction,
            "idle_session_timeout": self.idle_session,
        }


SERVICE_ROLES = (
    ServiceRole("mizan_api", statement_timeout="30s", idle_in_transaction="30s"),
    ServiceRole("mizan_checkout", statement_timeout="30s", idle_in_transaction="30s"),
    ServiceRole("mizan_webhooks"),
    ServiceRole("mizan_scheduler"),
    ServiceRole("mizan_dashboard"),
    ServiceRole("mizan_monitor"),
    # The audit of a large installation reads whole tables.
    ServiceRole(CLI, statement_timeout="1h", idle_in_transaction="15min"),
)
ROLE_NAMES = (OWNER, *(role.name for role in SERVICE_ROLES))

_ATTRIBUTES = """
select rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolcanlogin, coalesce(rolconfig, '{}')
from pg_roles where rolname = %s"""
_FLAGS = ("superuser", "createrole", "createdb", "replication", "bypassrls")
_MEMBERSHIPS = """
select r.rolname, m.rolname from pg_auth_members as g
join pg_roles as r on r.oid = g.roleid join pg_roles as m on m.oid = g.member
where (m.rolname = any(%(names)s) or r.rolname = any(%(names)s)) and (g.inherit_option or g.set_option)
order by 1, 2"""

# What belongs to somebody else and is not part of something that moves by itself: an index, a row type, a sequence of
# an identity column. pg_depend knows what comes from an extension.
_FOREIGN_OBJECTS = """
with mine as (select oid from pg_roles where rolname = %(owner)s)
select case relkind when 'S' then 'sequence' when 'v' then 'view' else 'table' end,
       format('%%I.%%I', nspname, relname), pg_get_userbyid(relowner)
from pg_class join pg_namespace as n on n.oid = relnamespace
where nspname = 'public' and relkind in ('r', 'p', 'v', 'S') and relowner <> (select oid from mine)
  and not exists (select from pg_depend as d where d.objid = pg_class.oid and d.objsubid = 0
                  and d.classid = 'pg_class'::regclass
                  and (d.deptype in ('e', 'i') or d.deptype = 'a' and relkind = 'S'))
union all
select 'function', p.oid::regprocedure::text, pg_get_userbyid(proowner)
from pg_proc as p join pg_namespace as n on n.oid = pronamespace
where nspname = 'public' and proowner <> (select oid from mine)
  and not exists (select from pg_depend as d where d.objid = p.oid and d.classid = 'pg_proc'::regclass
                  and d.deptype = 'e')
order by 1, 2"""
_DATABASE_OWNER = "select pg_get_userbyid(datdba) from pg_database where datname = current_database()"
_LOCK_TIMEOUT = "500ms"
_TRIES, _PAUSE_S = 120, 0.5
# "tuple concurrently updated": roles have no locks of their own.
_ROLE_CHANGED_BY_OTHERS = psycopg.errors.InternalError_


def prepare_roles(connection: Connection[Any], passwords: Mapping[str, str]) -> None:
    """Create the roles that are missing, correct their attributes and time limits, and set the given passwords.

    `connection` is an administrator's, with autocommit. Can be repeated, and run by several at once. Raises what
    psycopg raises if the administrator lacks a right.
    """
    settings = {OWNER: {}, **{role.name: role.settings for role in SERVICE_ROLES}}
    for name in ROLE_NAMES:
        for attempt in _retry(_ROLE_CHANGED_BY_OTHERS):
            with attempt:
                _ensure_role(connection, name)
                _correct_attributes(connection, name, settings[name])
                if name in passwords:
                    _set_password(connection, name, passwords[name])


def _set_password(connection: Connection[Any], name: str, password: str) -> None:
    connection.execute(
        sql.SQL("alter role {} password {}").format(sql.Identifier(name), sql.Literal(password))
    )


def create_missing_roles(connection: Connection[Any]) -> None:
    """Create the service roles that are missing, without passwords, for a migration. `connection` has autocommit.

    Raises MissingRolesError if this connection's role may not create roles, as on most managed servers.
    """
    known = {name for (name,) in connection.execute("select rolname from pg_roles")}
    missing = [role.name for role in SERVICE_ROLES if role.name not in known]
    if not missing:
        return
    may_create = connection.execute(
        "select from pg_roles where rolname = current_user and (rolsuper or rolcreaterole)"
    ).rowcount
    if not may_create:
        statements = " ".join(f"create role {name} login;" for name in missing)
        raise MissingRolesError(
            f"PostgreSQL has no role {', '.join(missing)}, and {connection.info.user} may not create roles. Run "
            "`mizan roles` with the connection of an administrator in DATABASE_ADMIN_URL, or let an administrator run: "
            f"{statements}"
        )
    for role in SERVICE_ROLES:
        _ensure_role(connection, role.name)
        _correct_attributes(connection, role.name, role.settings)


def _ensure_role(connection: Connection[Any], name: str) -> None:
    if connection.execute("select from pg_roles where rolname = %s", (name,)).rowcount:
        return
    with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):  # somebody else was faster
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))


def _correct_attributes(connection: Connection[Any], name: str, settings: Mapping[str, str]) -> None:
    """Only what is wrong is changed: an administrator without superuser may not even repeat `nosuperuser`."""
    row = connection.execute(_ATTRIBUTES, (name,)).fetchone()
    assert row is not None
    *flags, can_login, config = row
    wrong = [f"no{flag}" for flag, is_set in zip(_FLAGS, flags, strict=True) if is_set]
    wrong += [] if can_login else ["login"]
    role = sql.Identifier(name)
    if wrong:
        connection.execute(sql.SQL("alter role {} {}").format(role, sql.SQL(" ".join(wrong))))
    for key, value in settings.items():
        if f"{key}={value}" not in config:
            connection.execute(
                sql.SQL("alter role {} set {} = {}").format(role, sql.Identifier(key), sql.Literal(value))
            )


def own_database(connection: Connection[Any]) -> list[str]:
    """Make the owner role the owner of the current database and of all that Mizan has in it; return what was moved.

    An earlier version was installed by another role, mostly the superuser of `initdb`, for which PostgreSQL refuses
    `reassign owned`. So each object moves by itself, in a transaction of its own, with a short wait for its lock:
    services of the earlier version go on working. If the earlier owner is no superuser, it becomes a member of the
    owner role, so that its services keep their rights; leave_earlier_owners() ends that.

    `connection` is an administrator's, with autocommit. Can be repeated. Raises what psycopg raises.
    """
    row = connection.execute(
        "select rolsuper, rolname = %s from pg_roles where rolname = current_user", (OWNER,)
    ).fetchone()
    assert row is not None
    is_superuser, is_owner = row
    if is_owner:
        return []
    if not is_superuser:
        # To give something to a role, one must be able to become that role.
        connection.execute(sql.SQL("grant {} to current_user").format(sql.Identifier(OWNER)))
    moved = []
    (database_owner,) = connection.execute(_DATABASE_OWNER).fetchone() or ("",)
    objects = connection.execute(_FOREIGN_OBJECTS, {"owner": OWNER}).fetchall()
    _keep_rights(connection, {database_owner, *(owner for _, _, owner in objects)} - {OWNER})
    if database_owner != OWNER:
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("alter database {} owner to {}").format(database, sql.Identifier(OWNER)))
        moved.append(f"database {connection.info.dbname}")
    for kind, name, _ in objects:
        _change_owner(connection, kind, name)
        moved.append(f"{kind} {name}")
    return moved


def _keep_rights(connection: Connection[Any], earlier: set[str]) -> None:
    for name in sorted(earlier):
        is_plain = connection.execute(
            "select from pg_roles where rolname = %s and not rolsuper and rolname <> current_user", (name,)
        ).rowcount
        if is_plain:
            connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(OWNER), sql.Identifier(name)))


def _change_owner(connection: Connection[Any], kind: str, name: str) -> None:
    statement = f"alter {kind} {name} owner to {OWNER}"  # `name` was quoted by PostgreSQL
    for attempt in _retry(psycopg.errors.LockNotAvailable):
        with attempt, connection.transaction():
            connection.execute(f"set local lock_timeout = '{_LOCK_TIMEOUT}'".encode())
            connection.execute(statement.encode())


def _retry(error: type[psycopg.Error]) -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(error),
        wait=wait_fixed(_PAUSE_S),
        stop=stop_after_attempt(_TRIES),
        reraise=True,
    )


def leave_earlier_owners(connection: Connection[Any]) -> list[str]:
    """Take away every membership that one of our roles has or gives. Return the members' names.

    Call it once no service of the earlier version runs any more.
    """
    found = connection.execute(_MEMBERSHIPS, {"names": list(ROLE_NAMES)}).fetchall()
    for role, member in found:
        connection.execute(
            sql.SQL("revoke {} from {} cascade").format(sql.Identifier(role), sql.Identifier(member))
        )
    return [member for _, member in found]
