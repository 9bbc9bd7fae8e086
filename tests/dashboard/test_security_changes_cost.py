"""The notice of security changes is on every page: its cost does not depend on the size of the audit log."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from shared.domain.accounts.roles import Role
from shared.domain.security_changes import UNSEEN_SQL, find_unseen_changes, list_security_changes
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import in_index_order
from shared.platform.settings import Settings
from tests.dashboard.query_plans import explain
from tests.dashboard.world import DashboardWorld
from tests.postgres_statistics import plan_buffers

pytestmark = pytest.mark.plans

_ROWS = 200_000
_MOST_BUFFERS = 60
_FILL = """
insert into audit_log (merchant_id, member_id, actor, address, action)
select m.merchant_id, m.id, m.email, '192.0.2.1', %s from members as m, generate_series(1, %s) where m.email = %s"""


@pytest.fixture
def unattended(settings: Settings) -> Iterator[DashboardWorld]:
    """A world without autovacuum of the audit log, and with a long statement timeout to fill it."""
    patient = replace(settings, database=replace(settings.database, statement_timeout_s=250))
    database = Database(patient.database, "dashboard")
    world = DashboardWorld(patient, database, database)
    world.run("alter table audit_log set (autovacuum_enabled = off)")
    yield world
    database.close()


def test_notice_reads_few_pages_of_a_large_audit_log(unattended: DashboardWorld) -> None:
    """With many entries of every day since, many older changes, and with and without the planner's statistics."""
    world = unattended
    email = world.make_member(Role.OWNER)
    ((member, merchant),) = world.rows("select id, merchant_id from members where email = %s", email)
    world.run(_FILL, "provider_set", _ROWS // 4, email)
    world.run("update members set changes_seen_at = mizan_now()")
    world.run(_FILL, "signed_in", _ROWS, email)
    world.run(_FILL, "provider_set", 5, email)
    for _ in range(2):
        assert _cost(world, member, merchant) <= _MOST_BUFFERS
        world.run("vacuum analyze audit_log")
    with world.database.transaction() as connection:
        assert len(list_security_changes(connection, merchant, before=None, limit=51)) == 51


def _cost(world: DashboardWorld, member: UUID, merchant: UUID) -> int:
    values = {"member": member, "merchant": merchant, "address": "198.51.100.1"}
    with in_index_order(world.database) as cursor:
        plan = explain(cursor, UNSEEN_SQL.encode(), values)
        found = find_unseen_changes(cursor, merchant, member, "198.51.100.1")
        assert found is not None
        assert found.count == 5
    return plan_buffers(plan)
