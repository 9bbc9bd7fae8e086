"""Failed sign-ins are recorded for owners and operators, without what was typed, and a flood fills few rows."""

from datetime import timedelta
from uuid import uuid4

from prometheus_client import REGISTRY

from shared.domain.accounts.failed_sign_ins import (
    MAX_ADDRESSES,
    FailureReason,
    SignInFailure,
    list_operators_failed_sign_ins,
    record_failed_sign_in,
)
from shared.domain.accounts.roles import Role
from shared.domain.accounts.throttles import ACCOUNT, ADDRESS
from tests.clock import Clock
from tests.dashboard.world import PASSWORD, DashboardWorld

WRONG = "not the password at all"
_ROWS = """
select m.email, f.merchant_id, f.address, f.reason, f.failures
from failed_sign_ins as f left join members as m on m.id = f.person_id order by f.id"""


def test_wrong_password_is_recorded_with_account_address_and_count(
    pages: DashboardWorld, clock: Clock
) -> None:
    now = clock.now()
    clock.stop_at(now)
    email = pages.make_member(Role.DEVELOPER)
    before = _counted("wrong_password")
    for _ in range(2):
        pages.person().sign_in(email, WRONG)
    clock.stop_at(now + timedelta(minutes=1))
    pages.person().sign_in(email, WRONG)
    entry = (email, pages.merchant.id, "127.0.0.1", "wrong_password")
    assert pages.rows(_ROWS) == [(*entry, 2), (*entry, 1)]
    assert _counted("wrong_password") == before + 3


def test_nothing_that_was_typed_is_stored_for_an_unknown_account(pages: DashboardWorld, clock: Clock) -> None:
    """People type passwords into the email field."""
    clock.stop_at(clock.now())
    for typed in ("hunter2 is my password", "hunter2@example.ly"):
        pages.person().sign_in(typed, WRONG)
    assert pages.rows(_ROWS) == [(None, None, "127.0.0.1", "unknown_account", 2)]
    assert "hunter2" not in str(pages.rows("select f::text from failed_sign_ins as f"))


def test_reason_tells_throttled_removed_and_invited_accounts_apart(
    pages: DashboardWorld, clock: Clock
) -> None:
    clock.stop_at(clock.now())
    removed, throttled = pages.make_member(Role.VIEWER), pages.make_member(Role.VIEWER)
    pages.run("update members set removed_at = now() where email = %s", removed)
    invited = "invited@example.ly"
    owner = pages.person(Role.OWNER)
    owner.open("/team")
    owner.post("/team/invite", email=invited, role="viewer")
    for _ in range(ACCOUNT.free):
        pages.person().sign_in(throttled, WRONG)
    assert pages.person().sign_in(throttled, PASSWORD).status_code == 429
    for email in (removed, invited):
        assert pages.person().sign_in(email, PASSWORD).status_code == 422
    found = [(email, reason, failures) for email, _, _, reason, failures in pages.rows(_ROWS)]
    assert found == [
        (throttled, "wrong_password", ACCOUNT.free),
        (throttled, "throttled", 1),
        (removed, "removed", 1),
        (invited, "not_joined", 1),
    ]


def test_owner_sees_failed_sign_ins_of_the_own_team_and_others_do_not(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.DEVELOPER)
    pages.person().sign_in(email, WRONG)
    pages.person().sign_in("nobody@example.ly", WRONG)
    owner = pages.person(Role.OWNER)
    owner.open("/audit")
    assert owner.text.count("Failed to sign in") == 1
    assert "Reason: Wrong password" in owner.text
    assert email in owner.text
    stranger = pages.person(Role.OWNER, pages.make_merchant("Benghazi Books"))
    for person in (pages.person(Role.DEVELOPER), pages.person(Role.VIEWER), stranger):
        person.open("/audit")
        assert "Failed to sign in" not in person.text
    arab = pages.person(Role.OWNER, lang="ar")
    arab.open("/audit")
    assert "كلمة المرور خاطئة" in arab.text


def test_failed_sign_ins_are_listed_page_by_page_among_the_other_entries(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    (member,) = pages.rows("select id from members")[0]
    for number in range(60):
        pages.run(
            """insert into failed_sign_ins (minute, service, person_id, merchant_id, address, reason, expires_at)
               values (now() + make_interval(mins => %s), 'dashboard', %s, %s, %s, 'throttled', now())""",
            number,
            member,
            pages.merchant.id,
            f"192.0.2.{number}",
        )
    owner.open("/audit")
    owner.post("/sign-out")
    email = pages.rows("select email from members")[0][0]
    owner.sign_in(email, PASSWORD)
    first = owner.open("/audit").text
    second = owner.open(first.partition('rel="next" href="')[2].partition('"')[0]).text
    seen = [number for number in range(60) for text in (first, second) if f">192.0.2.{number}<" in text]
    assert seen == list(range(60))
    assert first.index("Signed out") < first.index("Failed to sign in")
    assert "Signed in" in second


def test_flood_from_many_addresses_fills_few_rows(world: DashboardWorld, clock: Clock) -> None:
    clock.stop_at(clock.now())
    (member,) = world.rows("select id from members where email = %s", world.make_member(Role.OWNER))[0]
    for person, merchant in ((member, world.merchant.id), (None, None)):
        failure = SignInFailure(FailureReason.WRONG_PASSWORD, person, merchant)
        for number in range(100):
            record_failed_sign_in(world.database, "dashboard", f"198.51.100.{number}", [failure])
            record_failed_sign_in(world.database, "dashboard", f"2001:db8:1:2::{number:x}", [failure])
    counts = world.rows(
        """select count(*), sum(failures), count(*) filter (where address is null) from failed_sign_ins
           group by person_id"""
    )
    assert counts == [(MAX_ADDRESSES + 1, 200, 1)] * 2


def test_throttled_address_that_tries_many_accounts_fills_one_row_a_minute(
    pages: DashboardWorld, clock: Clock
) -> None:
    clock.stop_at(clock.now())
    emails = [pages.make_member(Role.VIEWER) for _ in range(3)]
    person = pages.person()
    for number in range(ADDRESS.free):
        person.sign_in(f"nobody-{number}@example.ly", WRONG)
    for email in emails:
        assert person.sign_in(email, PASSWORD).status_code == 429
    assert pages.rows(_ROWS) == [
        (None, None, "127.0.0.1", "unknown_account", ADDRESS.free),
        (None, None, "127.0.0.1", "throttled", len(emails)),
    ]


def test_operators_see_failures_without_an_account_but_not_those_of_merchants(world: DashboardWorld) -> None:
    mine = SignInFailure(FailureReason.WRONG_PASSWORD, uuid4(), world.merchant.id)
    nobodys = SignInFailure(FailureReason.UNKNOWN_ACCOUNT)
    for failure in (mine, nobodys):
        record_failed_sign_in(world.database, "dashboard", "192.0.2.7", [failure])
    with world.database.transaction() as connection:
        (entry,) = list_operators_failed_sign_ins(connection, before=None, limit=10)
    assert (entry.actor, entry.address) == ("", "192.0.2.7")
    assert entry.details == {"service": "dashboard", "reason": "unknown_account", "count": 1}


def _counted(reason: str) -> float:
    labels = {"service": "dashboard", "reason": reason}
    return REGISTRY.get_sample_value("mizan_failed_sign_ins_total", labels) or 0
