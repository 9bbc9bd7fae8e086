"""The audit log shows who did what, when and from where. It is append-only."""

import psycopg
import pytest

from shared.console.audit_log import ACTIONS
from shared.domain.accounts.roles import Role
from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from tests.dashboard.world import DashboardWorld


def test_audit_log_is_append_only(world: DashboardWorld) -> None:
    _write(world, 1)
    for statement in (
        "update audit_log set actor = 'somebody else'",
        "delete from audit_log",
        "truncate audit_log",
        "truncate merchants cascade",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            world.run(statement)
        assert world.audit() == ["application_renamed"], statement


def test_audit_log_entry_shows_who_what_when_and_from_where(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    person.open("/audit")
    assert "Signed in" in person.text
    assert "127.0.0.1" in person.text
    assert "@example.ly" in person.text


def test_every_audit_log_action_has_a_label() -> None:
    assert set(ACTIONS) == set(Action)


@pytest.mark.parametrize(
    ("action", "details", "shown"),
    [
        (Action.MEMBER_INVITED, {"role": "developer"}, "الدور: <bdi>مطوّر</bdi>"),
        (Action.ROLE_CHANGED, {"from": "viewer", "to": "owner"}, "إلى: <bdi>مالك</bdi>"),
        (Action.CREDENTIAL_ISSUED, {"kind": "access_token"}, "النوع: <bdi>رمز الوصول</bdi>"),
        (Action.METHODS_CHANGED, {"methods": ["card", "sadad"]}, "<bdi>بطاقة مصرفية · سداد</bdi>"),
        (Action.PROVIDER_SET, {"adapter": "plutu"}, "المزوّد: <bdi>بلوتو</bdi>"),
        (Action.ATTEMPT_DECIDED, {"outcome": "duplicate"}, "النتيجة: <bdi>دفعة مكرّرة</bdi>"),
        (Action.ATTEMPT_DECIDED, {"provider_answer": "not_paid"}, "<bdi>لم تُدفع حتى الآن</bdi>"),
        (Action.PAYMENTS_EXPORTED, {"status": "canceled"}, "الحالة: <bdi>منتهية الصلاحية</bdi>"),
        (Action.PAYMENTS_EXPORTED, {"duplicates": "yes"}, "الدفعات المكرّرة فقط: <bdi>نعم</bdi>"),
        (Action.PAYMENTS_EXPORTED, {"search": "card"}, "بحث: <bdi>card</bdi>"),
    ],
)
def test_arabic_audit_log_has_no_code_words(
    pages: DashboardWorld, action: Action, details: AuditDetails, shown: str
) -> None:
    """Roles, methods, states and kinds are translated. What a person wrote stays as it is."""
    with pages.database.transaction() as connection:
        add_audit_entry(
            connection,
            Actor("Amal", address="192.0.2.1"),
            action,
            merchant_id=pages.merchant.id,
            details=details,
        )
    assert shown in pages.person(Role.OWNER).open("/audit?lang=ar").text


def test_audit_log_is_listed_page_by_page(pages: DashboardWorld) -> None:
    """No entry is missing or repeated, and new entries do not shift the pages."""
    person = pages.person(Role.VIEWER)
    _write(pages, 120)
    seen: list[str] = []
    path = "/audit"
    while path:
        text = person.open(path).text
        seen += [part.partition("<")[0] for part in text.split("number: <bdi>")[1:]]
        _write(pages, 1, "later")
        path = text.partition('rel="next" href="')[2].partition('"')[0]
    assert seen == [str(number) for number in reversed(range(120))]


def test_audit_log_of_another_merchant_is_not_shown(pages: DashboardWorld) -> None:
    _write(pages, 1, "Somebody of Tripoli Coffee")
    stranger = pages.person(Role.OWNER, pages.make_merchant("Benghazi Books"))
    stranger.open("/audit")
    assert "Somebody of Tripoli Coffee" not in stranger.text


def test_hostile_audit_log_entries_are_escaped(pages: DashboardWorld) -> None:
    person = pages.person(Role.OWNER)
    _write(pages, 1, "<script>alert(1)</script>")
    assert "<script>alert(1)" not in person.open("/audit").text


def test_invalid_cursor_shows_the_newest_entries(pages: DashboardWorld) -> None:
    person = pages.person(Role.VIEWER)
    for before in ("x", "%00", "null", "'"):
        assert person.open(f"/audit?before={before}").status_code == 200, before


def _write(world: DashboardWorld, count: int, actor: str = "Amal") -> None:
    with world.database.transaction() as connection:
        for number in range(count):
            add_audit_entry(
                connection,
                Actor(actor, address="192.0.2.1"),
                Action.APPLICATION_RENAMED,
                merchant_id=world.merchant.id,
                application_id=world.application.id,
                details={"number": number},
            )
