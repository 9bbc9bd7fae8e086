"""PostgreSQL itself shows the dashboard only rows of the merchant that a request names, whatever a query forgets."""

from dataclasses import replace

import pytest
from psycopg.errors import InsufficientPrivilege

from services.dashboard.deliveries import queries as delivery_queries
from services.dashboard.overview.queries import SUCCEEDED
from services.dashboard.row_security import NOTHING, RowScope, ScopedDatabase
from shared.domain.accounts.roles import Role
from shared.domain.accounts.sessions import find_session
from shared.domain.applications.registry import (
    list_applications,
)
from shared.domain.security_changes import read_changes_to_mail
from shared.platform.database.granted import GRANTS
from shared.platform.database.pool import Database, fetch_scalar
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.merchant_rows import TABLES, Merchants
from tests.dashboard.test_deliveries_list import listed
from tests.dashboard.world import ROLE, DashboardWorld
from tests.database_roles import as_role, open_as

_OTHER_ROLES = (
    "mizan_api",
    "mizan_checkout",
    "mizan_webhooks",
    "mizan_scheduler",
    "mizan_monitor",
    "mizan_cli",
)
_WITHOUT_MERCHANTS = {"alembic_version", "login_throttles"}
"""Tables without row-level security: a revision, and counters by keyed hashes."""
_EMPTY_FOR_THE_DASHBOARD = {
    "checkout_limits",
    "code_challenges",
    "dead_letter_bulk_replays",
    "dead_letter_dismissals",
    "dead_letter_replays",
    "decision_proposals",
    "operator_inquiries",
    "operators",
    "outbox",
    "provider_pages",
}
_TIMES = """
select * from delivery_times(%s, %s::smallint[], uuid7_floor(now() - interval '1 day'),
                             uuid7_floor(now() + interval '1 day'))"""
_INVITED = "select merchant_id from invitation_scope(sha256(%s::bytea))"


def test_each_table_of_the_catalog_is_secured_or_listed_as_not(world: DashboardWorld) -> None:
    tables = dict(world.rows(TABLES))
    assert {table for table, is_secured in tables.items() if not is_secured} == _WITHOUT_MERCHANTS
    with_policy = world.rows(
        """select tablename from pg_policies where 'mizan_dashboard' = any(roles) and cmd in ('ALL', 'SELECT')"""
    )
    assert tables.keys() - _WITHOUT_MERCHANTS - {row[0] for row in with_policy} == _EMPTY_FOR_THE_DASHBOARD
    assert not world.rows("select relname from pg_class where relkind in ('v', 'm') and oid >= 16384")


def test_each_other_service_has_an_explicit_policy_for_each_table(world: DashboardWorld) -> None:
    found = world.rows(
        "select tablename, roles::text[], cmd, qual, with_check from pg_policies where policyname = 'services'"
    )
    assert {row[0] for row in found} == {table for table, is_secured in world.rows(TABLES) if is_secured}
    for table, roles, command, condition, check in found:
        assert (set(roles), command, condition, check) == (set(_OTHER_ROLES), "ALL", "true", None), table


@pytest.mark.parametrize("role", _OTHER_ROLES)
def test_other_services_see_all_rows(merchants: Merchants, role: str) -> None:
    """Of each table that they may read, with their own login."""
    everything = merchants.all_rows(merchants.world.database)
    assert all(everything.values())
    readable = [table for table in everything if "select" in GRANTS[table].get(role, {})]
    assert readable
    with open_as(role, merchants.world.settings.database) as database, database.cursor() as cursor:
        for table in readable:
            counted = fetch_scalar(cursor, f"select count(*) from {table}".encode())
            assert counted == len(everything[table]), table


def test_nobody_reads_a_partition_past_the_policy_of_its_table(world: DashboardWorld) -> None:
    partitions = "select oid from pg_class where relispartition and relkind = 'r'"
    assert world.rows(f"select count(*) > 20 from ({partitions}) as p") == [(True,)]
    assert not world.rows(
        f"{partitions} and has_table_privilege('{ROLE}', oid, 'select, insert, update, delete')"
    )


def test_without_a_merchant_nothing_is_seen(merchants: Merchants) -> None:
    assert not any(merchants.all_rows(merchants.database(NOTHING)).values())


def test_query_without_any_filter_returns_rows_of_one_merchant(merchants: Merchants) -> None:
    """Of every table exactly its rows, and those of its member's account."""
    seen = merchants.all_rows(merchants.of(merchants.mine))
    assert not seen.keys() & _EMPTY_FOR_THE_DASHBOARD, "it has no right to read these"
    for table, rows in seen.items():
        assert rows, table
        before = [row for row in merchants.rows_of_mine[table] if table != "merchants" or "Mine" in row]
        assert set(rows) <= set(before), table
    expected = {
        "payment_intents": 1, "payment_attempts": 2, "intent_events": 1, "webhook_deliveries": 3,
        "webhook_tries": 3, "resend_requests": 1, "bulk_resends": 1, "credentials": 2, "members": 3,
        "merchants": 1, "applications": 1, "users": 1, "sessions": 1, "one_time_codes": 1, "failed_sign_ins": 1,
    }  # fmt: skip
    assert {table: len(seen[table]) for table in expected} == expected


def test_statement_without_a_filter_changes_rows_of_one_merchant_only(merchants: Merchants) -> None:
    """Every table that it may update or delete from: the other merchant's rows stay."""
    mine, database = merchants.mine, merchants.world.database
    seen = merchants.all_rows(merchants.of(mine))
    kept = merchants.all_rows(database)
    changed = set()
    with pytest.raises(_RolledBackError), merchants.of(mine).transaction() as connection:
        for table, rows in seen.items():
            verbs = GRANTS[table][ROLE]
            readable = merchants.readable[table].split(", ")
            for column in [column for column in verbs.get("update", ()) if column in readable][:1]:
                updated = connection.execute(f"update {table} set {column} = {column}".encode()).rowcount
                # Accounts of colleagues are seen, and not changed; of this merchant there is one.
                assert updated == len(rows), table
                changed.add(table)
            if "delete" in verbs:
                assert connection.execute(f"delete from {table}".encode()).rowcount == len(rows), table
                changed.add(table)
        raise _RolledBackError
    assert {"applications", "application_methods", "members", "users", "sessions", "bulk_resends"} <= changed
    assert merchants.all_rows(database) == kept


class _RolledBackError(Exception):
    pass


def test_rows_cannot_be_given_to_another_merchant(merchants: Merchants) -> None:
    other = merchants.other
    statements: list[tuple[str, tuple[object, ...]]] = [
        ("insert into applications (merchant_id, name) values (%s, 'x')", (other.merchant.id,)),
        ("insert into audit_log (merchant_id, actor, action) values (%s, 'x', 'x')", (other.merchant.id,)),
        ("insert into members (merchant_id, email, role) values (%s, 'x@y', 'owner')", (other.merchant.id,)),
        (
            """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, next_due_at)
               values (uuidv7(), uuidv7(), %s, 'test', 'https://shop.example/', 1, now())""",
            (other.application,),
        ),
        (
            "insert into webhook_secrets (application_id, version, encrypted_secret) values (%s, 9, 'x')",
            (other.application,),
        ),
        ("insert into resend_requests (id, delivery_id) values (uuidv7(), %s)", (other.delivery,)),
        (
            "insert into sessions (hash, person_id, expires_at) values (sha256('x'), %s, now())",
            (other.member,),
        ),
        ("insert into users (email, password_hash) values (%s, 'x')", ("new@other.example",)),
        ("insert into application_methods values (%s, 'sadad')", (other.application,)),
    ]
    for statement, values in statements:
        refused = pytest.raises(InsufficientPrivilege, match="row-level security policy")
        with refused, merchants.of(merchants.mine).transaction() as connection:
            connection.execute(statement.encode(), values)


def test_mail_about_changes_of_another_merchant_is_not_read(merchants: Merchants) -> None:
    entries = [row[0] for row in merchants.world.rows("select id from audit_log")]
    with merchants.of(merchants.mine).cursor() as cursor:
        assert [found.merchant_name for found in read_changes_to_mail(cursor, entries)] == ["Mine"]
    with merchants.of(merchants.mine).transaction() as connection:
        assert [each.name for each in list_applications(connection)] == ["Mine shop"]


def test_connection_that_is_used_again_starts_with_nothing(merchants: Merchants) -> None:
    """After a commit, an error, a single statement, and a change of the merchant within the transaction."""
    one = Database(replace(as_role(ROLE, merchants.world.settings.database), pool_size=1), "dashboard")
    mine = ScopedDatabase(one, lambda: RowScope(merchants.mine.merchant.id, merchants.mine.email))
    count = "select pg_backend_pid(), (select count(*) from payment_intents), (select count(*) from members)"

    def counted(database: Database) -> tuple[object, ...]:
        with database.cursor() as cursor:
            row = cursor.execute(count).fetchone()
        assert row is not None
        return tuple(row)

    backend = counted(mine)[0]
    assert counted(mine) == (backend, 1, 3)
    assert counted(one) == (backend, 0, 0)
    with mine.transaction() as connection:
        connection.execute(
            "select set_config('mizan.merchant_id', %s, true)", (str(merchants.other.merchant.id),)
        )
    assert counted(one) == (backend, 0, 0)
    with pytest.raises(_RolledBackError), mine.transaction():
        raise _RolledBackError
    assert counted(one) == (backend, 0, 0)
    assert counted(mine) == (backend, 1, 3)
    one.close()


def test_token_of_a_session_or_an_invitation_is_enough_to_find_its_member(merchants: Merchants) -> None:
    """By functions that only the dashboard may call. A token that has ended finds nothing."""
    world, mine = merchants.world, merchants.mine
    for function in ("dashboard_session", "invitation_scope", "sees_delivery", "delivery_times"):
        ((is_definer, path, roles),) = world.rows(
            """select prosecdef, proconfig[1], array(select grantee::regrole::text from aclexplode(proacl)
                                                     where grantee <> proowner)
               from pg_proc where proname = %s""",
            function,
        )
        assert (is_definer, path, roles) == (True, "search_path=pg_catalog, public, pg_temp", [ROLE])
    for is_valid in (True, False):
        with merchants.database(NOTHING).cursor() as cursor:
            session = find_session(cursor, mine.session_token)
            invited = cursor.execute(_INVITED, (mine.invitation_token.encode(),)).fetchall()
            assert find_session(cursor, "another") is None
            assert cursor.execute(_INVITED, (b"another",)).fetchall() == []
        assert (session is not None and session.member.id == mine.member) is is_valid
        assert invited == ([(mine.merchant.id,)] if is_valid else [])
        world.run("update sessions set expires_at = now()")
        world.run("update one_time_codes set used_at = now()")


def test_functions_of_the_owner_tell_nothing_of_other_merchants(merchants: Merchants) -> None:
    """Nor anything without a merchant. They answer for one's own deliveries."""
    mine, other = merchants.mine, merchants.other
    for scope, seen in (
        (merchants.of(mine), mine),
        (merchants.of(other), other),
        (merchants.database(NOTHING), None),
    ):
        for rows in (mine, other):
            with scope.cursor() as cursor:
                assert fetch_scalar(cursor, "select sees_delivery(%s)", (rows.delivery,)) is (rows is seen)
                times = cursor.execute(_TIMES, (rows.application, SUCCEEDED)).fetchall()
                assert len(times) == (1 if rows is seen else 0)
    with merchants.of(mine).unscoped_cursor() as cursor:
        assert fetch_scalar(cursor, "select sees_delivery(%s)", (mine.delivery,)) is False
        assert fetch_scalar(cursor, "select count(*) from applications") == 0


def test_scope_is_quoted(merchants: Merchants) -> None:
    email = """o'brien\\"; set local mizan.merchant_id = 'x'; --@example.ly"""
    with merchants.database(RowScope(merchants.mine.merchant.id, email)).cursor() as cursor:
        settings = "select current_setting('mizan.merchant_id'), current_setting('mizan.email')"
        assert cursor.execute(settings).fetchall() == [(str(merchants.mine.merchant.id), email)]


def test_page_whose_query_forgets_its_filter_shows_nothing_of_others(
    pages: DashboardWorld, deliveries: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = pages.make_merchant("Other")
    mine = deliveries.make()
    deliveries.make(application_id=other.application.id)
    forgetful = delivery_queries._ALL_SQL.replace("application_id = %(application)s and id", "id", 1)
    assert forgetful != delivery_queries._ALL_SQL
    monkeypatch.setattr(delivery_queries, "_ALL_SQL", forgetful)
    viewer = pages.person(Role.VIEWER)
    assert listed(viewer, pages.application.id, "") == [mine]
    viewer.close()
