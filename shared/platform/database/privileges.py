"""Compares what the roles may do in a database with what they shall do, and says what is too wide or missing.

The expected rights are in granted.py; the migrations grant them. Everything that a role can effectively do counts: its
own grants, those of `public`, of roles that it is a member of, and ownership.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from shared.platform.database.granted import EXECUTABLE, GRANTS, Right
from shared.platform.database.roles import CLI, OWNER, ROLE_NAMES, SERVICE_ROLES

_SERVICES = [role.name for role in SERVICE_ROLES]
_SEEN_BY_DASHBOARD = [table for table, roles in GRANTS.items() if "mizan_dashboard" in roles]
_COLUMN_VERBS = ["select", "insert", "update", "references"]
_TABLE_VERBS = ["delete", "truncate", "trigger", "maintain"]

# Effective rights, per column where PostgreSQL has them per column. Partitions are read through their tables, so nobody
# has rights on them.
_TABLE_RIGHTS = """
select r.name, c.relname, v.verb, '' from unnest(%(roles)s::text[]) as r (name)
cross join pg_class as c cross join unnest(%(verbs)s::text[]) as v (verb)
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and has_table_privilege(r.name, c.oid, v.verb)"""
_COLUMN_RIGHTS = """
select r.name, c.relname, v.verb, a.attname from unnest(%(roles)s::text[]) as r (name)
cross join pg_class as c cross join unnest(%(verbs)s::text[]) as v (verb)
join pg_attribute as a on a.attrelid = c.oid and (a.attnum > 0 or a.attname = 'ctid') and not a.attisdropped
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and has_column_privilege(r.name, c.oid, a.attnum, v.verb)"""
_COLUMNS = """
select c.relname, a.attname from pg_class as c
join pg_attribute as a on a.attrelid = c.oid and (a.attnum > 0 or a.attname = 'ctid') and not a.attisdropped
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
order by c.relname, a.attnum"""
_FUNCTION_RIGHTS = """
select r.name, p.proname from unnest(%(roles)s::text[]) as r (name) cross join pg_proc as p
where p.pronamespace = 'public'::regnamespace and has_function_privilege(r.name, p.oid, 'execute')"""
_OTHER_RIGHTS = """
select r.name, 'use the sequence ' || c.relname from unnest(%(roles)s::text[]) as r (name) cross join pg_class as c
where c.relnamespace = 'public'::regnamespace and c.relkind = 'S'
  and has_sequence_privilege(r.name, c.oid, 'usage, select, update')
union all
select r.name, 'create objects in the schema ' || n.nspname
from unnest(%(roles)s::text[]) as r (name) cross join pg_namespace as n
where n.nspname !~ '^pg_(toast|temp)' and has_schema_privilege(r.name, n.oid, 'create')
union all
select r.name, v.what from unnest(%(roles)s::text[]) as r (name)
cross join (values ('create', 'create schemas in the database'),
                   ('temporary', 'create temporary tables in the database')) as v (verb, what)
where has_database_privilege(r.name, current_database(), v.verb)"""
_NEEDED_ENTRY = """
select r.name from unnest(%(roles)s::text[]) as r (name)
where not has_database_privilege(r.name, current_database(), 'connect')
   or not has_schema_privilege(r.name, 'public', 'usage')"""
_ATTRIBUTES = """
select rolname, flag from pg_roles
cross join lateral (values ('superuser', rolsuper), ('createrole', rolcreaterole), ('createdb', rolcreatedb),
                           ('replication', rolreplication), ('bypassrls', rolbypassrls)) as f (flag, is_set)
where rolname = any(%(all)s) and is_set"""
_MEMBERSHIPS = """
select m.rolname, r.rolname from pg_auth_members as g
join pg_roles as r on r.oid = g.roleid join pg_roles as m on m.oid = g.member
where (m.rolname = any(%(all)s) or r.rolname = any(%(all)s)) and (g.inherit_option or g.set_option)"""
_FOREIGN_OWNERS = """
select 'the table ' || relname, pg_get_userbyid(relowner) from pg_class
where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'S')
  and pg_get_userbyid(relowner) <> %(owner)s
union all
select 'the function ' || proname, pg_get_userbyid(proowner) from pg_proc
where pronamespace = 'public'::regnamespace and pg_get_userbyid(proowner) <> %(owner)s
union all
select 'the database', pg_get_userbyid(datdba) from pg_database
where datname = current_database() and pg_get_userbyid(datdba) <> %(owner)s"""
# docs/security.md has what the dashboard sees of each table, and why these two are seen by all.
_OPEN_ROWS = """
select 'row-level security of ' || relname || ' is off' from pg_class
where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
  and not relrowsecurity and relname not in ('alembic_version', 'login_throttles')
union all
select 'the policy ' || policyname || ' of ' || tablename || ' is not ours' from pg_policies
where schemaname = 'public' and policyname not in ('services', 'dashboard_1', 'dashboard_2')
  and roles && %(seen)s::name[]"""
# Without columns a condition holds for every row, so this is a policy that was opened.
_OPEN_POLICIES = """
select 'the policy ' || polname || ' of ' || polrelid::regclass || ' shows the dashboard the rows of all merchants'
from pg_policy where polcmd <> 'a' and 'mizan_dashboard'::regrole = any(polroles) and not exists (
    select from pg_depend where classid = 'pg_policy'::regclass and objid = pg_policy.oid
      and refobjid = polrelid and refobjsubid > 0)"""
_MISSING_POLICIES = """
select 'the policy ' || wanted.policy || ' of ' || relname || ' for ' || role from pg_class
cross join unnest(%(roles)s::text[]) as role
cross join lateral (select case role when 'mizan_dashboard' then 'dashboard_1' else 'services' end) as wanted (policy)
where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relrowsecurity
  and (role <> 'mizan_dashboard' or relname = any(%(dashboard)s))
  and not exists (select from pg_policies where schemaname = 'public' and tablename = relname
                    and policyname = wanted.policy and role = any(roles))
order by relname, role"""
_LOG_IS_PROTECTED = """
select from pg_trigger where tgrelid = 'audit_log'::regclass and tgname = 'audit_log_append_only' and tgenabled = 'O'"""

# The name of a session is visible to every role, what it does is not.
_SESSIONS = """
select distinct application_name, usename from pg_stat_activity
where datname = current_database() and application_name like 'mizan-%' order by 1, 2"""
_SESSION_ROLES = {
    "mizan-api": "mizan_api",
    "mizan-checkout": "mizan_checkout",
    "mizan-checkout-verifier": "mizan_checkout",
    "mizan-webhooks": "mizan_webhooks",
    "mizan-scheduler": "mizan_scheduler",
    "mizan-relay": "mizan_scheduler",
    "mizan-dashboard": "mizan_dashboard",
    "mizan-monitor": "mizan_monitor",
    "mizan-operator": CLI,
    "mizan-audit": CLI,
}


@dataclass(frozen=True, slots=True)
class PrivilegeFaults:
    """What differs from the expected rights, as sentences; both are empty if all is well."""

    too_wide: tuple[str, ...]
    missing: tuple[str, ...]


def find_privilege_faults(connection: Connection[Any]) -> PrivilegeFaults:
    """Compare the rights in the current database with the expected ones. Needs no more than a connection to it."""
    found = read_rights(connection)
    expected = expected_rights(read_columns(connection))
    names = {"roles": _SERVICES, "all": list(ROLE_NAMES), "owner": OWNER}
    functions = set(connection.execute(_FUNCTION_RIGHTS, names).fetchall())
    expected_functions = {(role, name) for name, roles in EXECUTABLE.items() for role in roles}
    attributes = connection.execute(_ATTRIBUTES, names).fetchall()
    memberships = connection.execute(_MEMBERSHIPS, names).fetchall()
    # Of these one line says it all: their other rights follow from it.
    unlimited = {role for role, flag in attributes if flag == "superuser"} | {
        member for member, _ in memberships
    }
    too_wide = [
        *(f"{role} has the attribute {flag}" for role, flag in attributes),
        *(f"{member} is a member of {role}" for member, role in memberships),
        *_sentences({right for right in found - expected if right.role not in unlimited}),
        *(
            f"{role} may {what}"
            for role, what in (
                *((role, f"execute {name}()") for role, name in sorted(functions - expected_functions)),
                *connection.execute(_OTHER_RIGHTS, names),
            )
            if role not in unlimited
        ),
        *(f"{what} belongs to {owner}" for what, owner in connection.execute(_FOREIGN_OWNERS, names)),
        *(fault for (fault,) in connection.execute(_OPEN_ROWS, {"seen": [*_SERVICES, "public"]})),
        *(fault for (fault,) in connection.execute(_OPEN_POLICIES)),
    ]
    missing = [
        *_sentences(expected - found, "may not"),
        *(f"{role} may not execute {name}()" for role, name in sorted(expected_functions - functions)),
        *(f"{role} cannot enter the database" for (role,) in connection.execute(_NEEDED_ENTRY, names)),
        *(
            fault
            for (fault,) in connection.execute(_MISSING_POLICIES, {**names, "dashboard": _SEEN_BY_DASHBOARD})
        ),
    ]
    if not connection.execute(_LOG_IS_PROTECTED).rowcount:
        missing.append("the trigger that protects audit_log is disabled or missing")
    return PrivilegeFaults(tuple(too_wide), tuple(missing))


def find_session_faults(connection: Connection[Any]) -> list[str]:
    """Return which of our programs are connected to the current database with another role than their own."""
    return [
        f"{program} is connected as {role}"
        for program, role in connection.execute(_SESSIONS)
        if role != _SESSION_ROLES.get(program, role)
    ]


def read_rights(connection: Connection[Any]) -> set[Right]:
    """Return what the service roles can do with tables and partitions. Rights on a whole table have an empty column."""
    return {
        Right(*row)
        for query, verbs in ((_TABLE_RIGHTS, _TABLE_VERBS), (_COLUMN_RIGHTS, _COLUMN_VERBS))
        for row in connection.execute(query, {"roles": _SERVICES, "verbs": verbs})
    }


def read_columns(connection: Connection[Any]) -> dict[str, list[str]]:
    """Return the columns of every table but the partitions."""
    columns: dict[str, list[str]] = {}
    for table, column in connection.execute(_COLUMNS):
        columns.setdefault(table, []).append(column)
    return columns


def expected_rights(columns: dict[str, list[str]]) -> set[Right]:
    """Return the expected rights; a verb without columns means all columns of the table."""
    return {
        right
        for table, roles in GRANTS.items()
        for role, verbs in roles.items()
        for verb, named in verbs.items()
        for right in _rights(role, table, verb, named or columns.get(table, []))
    }


def _rights(role: str, table: str, verb: str, columns: tuple[str, ...] | list[str]) -> Iterator[Right]:
    if verb in _TABLE_VERBS:
        yield Right(role, table, verb, "")
    else:
        yield from (Right(role, table, verb, column) for column in columns)


def _sentences(rights: set[Right], may: str = "may") -> list[str]:
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for right in sorted(rights):
        grouped.setdefault((right.role, right.verb, right.table), []).append(right.column)
    return [
        f"{role} {may} {verb} {table}" + (f" ({', '.join(columns)})" if any(columns) else "")
        for (role, verb, table), columns in grouped.items()
    ]
