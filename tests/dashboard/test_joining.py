"""Joining with an account: what an invitation link may do depends on whether it was emailed and on the account."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier, Thread
from uuid import UUID

import psycopg
import pytest

from services.dashboard.people import invitations
from shared.domain.accounts.joining import JoinStep, JoinStepChangedError, decide_step
from shared.domain.accounts.members import (
    find_members_by_email,
    get_member,
    lock_open_invitation,
    remove_member,
)
from shared.domain.accounts.roles import Role
from shared.domain.accounts.throttles import ACCOUNT
from shared.domain.accounts.users import User, change_password, find_user
from tests.clock import Clock
from tests.constants import UNKNOWN_ID
from tests.dashboard.mailbox import Mailbox, find_link
from tests.dashboard.world import PASSWORD, DashboardWorld, Merchant
from tests.page_client import PageClient
from tests.postgres_statistics import count_lock_waits
from tests.waiting import eventually

EMAIL = "mona@example.ly"
CHOSEN = "seven small boats at sea"
ANOTHER = "nine large ships at home"
WRONG = "not the password at all"
_ACCOUNT = "select email_verified_at is not null, password_hash from users where email = %s"
_ACTIVE = """
select merchants.name from members as m join merchants on merchants.id = m.merchant_id
where m.email = %s and m.joined_at is not null and m.removed_at is null order by m.joined_at"""


@pytest.mark.parametrize(
    ("account", "is_member", "is_proven", "step"),
    [
        (None, False, True, JoinStep.CHOOSE_PASSWORD),
        (None, False, False, JoinStep.CHOOSE_PASSWORD),
        ("verified", True, True, JoinStep.SIGN_IN),
        ("verified", True, False, JoinStep.SIGN_IN),
        ("verified", False, False, JoinStep.SIGN_IN),
        # Nobody can sign in with it: who forgot its password is removed and invited by email.
        ("verified", False, True, JoinStep.CHOOSE_PASSWORD),
        # The owner of the address replaces a password that somebody else may have chosen.
        ("unverified", True, True, JoinStep.CHOOSE_PASSWORD),
        ("unverified", True, False, JoinStep.ASK_FOR_EMAIL),
        ("unverified", False, True, JoinStep.CHOOSE_PASSWORD),
        ("unverified", False, False, JoinStep.CHOOSE_PASSWORD),
    ],
)
def test_step_of_each_account_and_link(
    account: str | None, is_member: bool, is_proven: bool, step: JoinStep
) -> None:
    verified_at = datetime(2026, 1, 1, tzinfo=UTC) if account == "verified" else None
    user = None if account is None else User(UUID(UNKNOWN_ID), EMAIL, "hash", verified_at)
    assert decide_step(user, is_member=is_member, is_proven=is_proven) is step


def test_emailed_link_makes_a_verified_account(world: DashboardWorld, mailbox: Mailbox) -> None:
    with world.serve():
        _join(world, _mail(world, mailbox), CHOSEN)
        assert _is_verified(world)


def test_shown_link_makes_an_account_that_is_not_verified(pages: DashboardWorld) -> None:
    _join(pages, _invite(pages), CHOSEN)
    assert not _is_verified(pages)


def test_link_that_could_not_be_mailed_proves_nothing(world: DashboardWorld, mailbox: Mailbox) -> None:
    """The owner sees it then, and it may have arrived all the same."""
    with world.serve():
        link = _mail(world, mailbox)
        with world.database.transaction() as connection:
            invitations.mark_shown(connection, link.rpartition("/")[2])
        _join(world, link, CHOSEN)
        assert not _is_verified(world)


@pytest.mark.parametrize("is_mailed", [True, False])
def test_verified_account_signs_in_to_join(world: DashboardWorld, mailbox: Mailbox, is_mailed: bool) -> None:
    """The link sets no password, and does not sign in who does not know it."""
    world.make_member(Role.OWNER, email=EMAIL)
    before = world.rows(_ACCOUNT, EMAIL)
    books = world.make_merchant("Benghazi Books")
    with world.serve():
        link = _mail(world, mailbox, books) if is_mailed else _invite_by_hand(world, books)
        person = world.person()
        person.open(link)
        assert "This address has an account: enter its password to join." in person.text
        assert person.post(link, password=CHOSEN).status_code == 422
        assert "This is not the password of your account." in person.text
        assert person.open("/account").url.startswith(f"{world.url}/sign-in")
        _join(world, link, PASSWORD)
        assert world.rows(_ACCOUNT, EMAIL) == before
        assert [row[0] for row in world.rows(_ACTIVE, EMAIL)] == ["Tripoli Coffee", "Benghazi Books"]
        person.sign_in(EMAIL, PASSWORD)
        assert person.title == "Choose a merchant"
        assert world.audit().count("member_joined") == 1


def test_unverified_account_does_not_join_a_second_merchant(pages: DashboardWorld) -> None:
    """Who has seen the first link may have chosen its password."""
    _join(pages, _invite(pages), CHOSEN)
    link = _invite(pages, pages.make_merchant("Benghazi Books"))
    person = pages.person()
    assert person.open(link).status_code == 200
    assert "So this link cannot be used. Ask for an invitation by email" in person.text
    for step in JoinStep:
        person.open("/sign-in")  # for its CSRF token: the page of the link has no form
        assert person.post(link, password=CHOSEN, step=step).status_code == 409
    assert [row[0] for row in pages.rows(_ACTIVE, EMAIL)] == ["Tripoli Coffee"]
    arab = pages.person(lang="ar")
    arab.open(link)
    assert "اطلب دعوة بالبريد الإلكتروني" in arab.text


def test_emailed_link_resets_an_unverified_account(world: DashboardWorld, mailbox: Mailbox) -> None:
    """Whoever chose the first password is signed out. The address's owner has the account, with its membership."""
    with world.serve():
        intruder = _join(world, _invite_by_hand(world, world.merchant), CHOSEN)
        link = _mail(world, mailbox, world.make_merchant("Benghazi Books"))
        owner = world.person()
        owner.open(link)
        assert "Your new password replaces the old one at all its merchants" in owner.text
        owner.post(link, password=ANOTHER)
        assert "Benghazi Books" in owner.text
        assert intruder.open("/account").url.startswith(f"{world.url}/sign-in")
        assert intruder.sign_in(EMAIL, CHOSEN).status_code == 422
        assert _is_verified(world)
        assert len(world.rows(_ACTIVE, EMAIL)) == 2
        changed = "select merchant_id from audit_log where action = 'password_changed'"
        assert world.rows(changed) == [(world.merchant.id,)]


def test_removed_member_with_an_unverified_account_starts_again(pages: DashboardWorld) -> None:
    """An owner can still help somebody who forgot the password, without mail. The account had nothing left."""
    owner = pages.person(Role.OWNER)
    old = _join(pages, _invite(pages), CHOSEN)
    owner.open("/team")
    (member,) = pages.rows("select id from members where email = %s", EMAIL)[0]
    owner.post(f"/team/{member}/remove")
    _join(pages, _invite(pages), ANOTHER)
    assert not _is_verified(pages)
    assert old.sign_in(EMAIL, CHOSEN).status_code == 422
    assert pages.person().sign_in(EMAIL, ANOTHER).url == f"{pages.url}/"


def test_owner_of_another_merchant_gains_nothing_by_inviting_the_address(
    pages: DashboardWorld, clock: Clock
) -> None:
    """No session, no other password, no more guesses than at the sign-in, and nothing for who knows the browser."""
    pages.make_member(Role.OWNER, email=EMAIL)
    before = pages.rows(_ACCOUNT, EMAIL)
    victim = pages.person()
    victim.sign_in(EMAIL, PASSWORD)
    books = pages.make_merchant("Benghazi Books")
    link = _invite(pages, books)
    intruder, reader = pages.person(), pages.person()
    reader.open(link)
    reader.post(link, password=PASSWORD, step="choose_password")
    assert reader.response.status_code == 409, "the account exists: no password is chosen for it"
    clock.stop_at(clock.now())
    statuses = []
    for number in range(ACCOUNT.free + 1):
        intruder.open(link)
        if number % 2:
            statuses.append(intruder.post(link, password=WRONG).status_code)
        else:
            statuses.append(intruder.sign_in(EMAIL, WRONG).status_code)
    assert statuses == [422] * ACCOUNT.free + [429]
    intruder.open(link)
    assert intruder.post(link, password=PASSWORD).status_code == 429, "it is not looked at"
    assert "Too many sign-ins have failed." in intruder.text
    assert intruder.open("/account").url.startswith(f"{pages.url}/sign-in")
    assert pages.rows(_ACCOUNT, EMAIL) == before
    assert [row[0] for row in pages.rows(_ACTIVE, EMAIL)] == ["Tripoli Coffee"]
    assert victim.open("/account").url == f"{pages.url}/account"
    seen = "select reason, sum(failures) from failed_sign_ins where merchant_id = %s group by reason order by reason"
    assert pages.rows(seen, pages.merchant.id) == [("throttled", 2), ("wrong_password", ACCOUNT.free)]


def test_password_of_all_memberships_is_changed_together(pages: DashboardWorld) -> None:
    """The sessions at other merchants end, and their audit logs say why."""
    pages.make_member(Role.OWNER, email=EMAIL)
    books = pages.make_merchant("Benghazi Books")
    pages.make_member(Role.VIEWER, books, EMAIL)
    here, there = pages.person(), pages.person()
    for person, merchant in ((here, pages.merchant), (there, books)):
        person.sign_in(EMAIL, PASSWORD)
        member = pages.rows(
            "select id from members where email = %s and merchant_id = %s", EMAIL, merchant.id
        )
        person.post("/sign-in/merchant", member=str(member[0][0]))
    here.open("/account")
    here.post("/account/password", current_password=PASSWORD, new_password=CHOSEN)
    assert here.open("/account").url == f"{pages.url}/account"
    assert there.open("/account").url.startswith(f"{pages.url}/sign-in")
    assert pages.person().sign_in(EMAIL, PASSWORD).status_code == 422
    changed = "select merchant_id from audit_log where action = 'password_changed' order by 1"
    assert sorted(pages.rows(changed)) == sorted([(pages.merchant.id,), (books.id,)])


def test_password_reset_during_a_change_of_the_password_wins(pages: DashboardWorld) -> None:
    """Who has a session with the old password cannot replace the new one."""
    pages.make_member(Role.OWNER, email=EMAIL)
    with pages.database.transaction() as connection:
        verified = find_user(connection, EMAIL)
        assert verified is not None
        assert change_password(connection, verified, CHOSEN, kept=b"") is not None
        assert change_password(connection, verified, ANOTHER, kept=b"") is None
    assert pages.person().sign_in(EMAIL, CHOSEN).url == f"{pages.url}/"


def test_session_that_starts_during_a_password_change_ends_with_it(world: DashboardWorld) -> None:
    """The change waits for the sign-in, which has locked the account, and ends its session."""
    world.make_member(Role.OWNER, email=EMAIL)
    with world.serve():
        with psycopg.connect(world.settings.database.url) as connection:
            user = find_user(connection, EMAIL)
            assert user is not None
            connection.execute("select from users where id = %s for update", (user.id,))
            person = world.person()
            signing_in = Thread(target=person.sign_in, args=(EMAIL, PASSWORD))
            signing_in.start()
            eventually(lambda: _waiting(world) == 1)
            changing = Thread(target=_change, args=(world, user))
            changing.start()
            eventually(lambda: _waiting(world) == 2)
        signing_in.join(30)
        changing.join(30)
        assert person.open("/account").url.startswith(f"{world.url}/sign-in")


def test_two_merchants_invitations_accepted_at_once_make_one_account(world: DashboardWorld) -> None:
    """The second one finds an account that is not verified, and does not join."""
    for round_ in range(5):
        email = f"mona-{round_}@example.ly"
        tokens = [_token(world, world.make_merchant(f"{name} {round_}"), email) for name in "ab"]
        assert sorted(_accept_together(world, tokens)) == ["changed", "joined"]
        assert len(world.rows("select from users where email = %s", email)) == 1
        assert len(world.rows(_ACTIVE, email)) == 1


def test_two_emailed_invitations_accepted_at_once_make_one_account(world: DashboardWorld) -> None:
    """The first one verifies the account; the second person must sign in with it."""
    for round_ in range(5):
        email = f"mona-{round_}@example.ly"
        merchants = [world.make_merchant(f"{name} {round_}") for name in "ab"]
        tokens = [_token(world, merchant, email, is_emailed=True) for merchant in merchants]
        assert sorted(_accept_together(world, tokens)) == ["changed", "joined"]
        assert len(world.rows("select from users where email = %s", email)) == 1


def test_one_link_accepted_twice_at_once_joins_once(world: DashboardWorld) -> None:
    for round_ in range(5):
        token = _token(world, world.merchant, f"mona-{round_}@example.ly")
        assert sorted(_accept_together(world, [token, token])) == ["expired", "joined"]


def test_member_who_is_removed_while_joining_is_not_in_the_team(world: DashboardWorld) -> None:
    """Whichever comes first: no account is in use afterwards."""
    world.make_member(Role.OWNER)
    for round_ in range(5):
        email = f"mona-{round_}@example.ly"
        token = _token(world, world.merchant, email)
        barrier = Barrier(2)
        removing = Thread(target=_remove, args=(world, email, barrier))
        removing.start()
        result = _accept(world, token, CHOSEN, barrier)
        removing.join(30)
        assert result in ("joined", "expired")
        assert world.rows(_ACTIVE, email) == []


def test_new_link_during_joining_does_not_deadlock(world: DashboardWorld) -> None:
    """Both lock first the member, then the link. Whoever joins waits here, and then has a link that was replaced."""
    token = _token(world, world.merchant, EMAIL)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(world.settings.database.url) as connection:
        ((invited,),) = connection.execute("select id from members where email = %s", (EMAIL,))
        assert lock_open_invitation(connection, invited)
        joining = pool.submit(_accept, world, token, CHOSEN, Barrier(1))
        eventually(lambda: _waiting(world) == 1)
        invitations.reissue_invitation(connection, get_member(connection, world.merchant.id, invited))
        connection.commit()
        assert joining.result(30) == "expired"


def _token(world: DashboardWorld, merchant: Merchant, email: str, *, is_emailed: bool = False) -> str:
    with world.database.transaction() as connection:
        return invitations.invite(connection, merchant.id, email, Role.VIEWER, is_emailed=is_emailed)[1]


def _accept_together(world: DashboardWorld, tokens: list[str]) -> list[str]:
    """Accept invitations at the same moment, each with another password, and return what came of each."""
    barrier = Barrier(len(tokens))
    with ThreadPoolExecutor(len(tokens)) as pool:
        jobs = [
            pool.submit(_accept, world, token, f"{CHOSEN} {number}", barrier)
            for number, token in enumerate(tokens)
        ]
        return [job.result(30) for job in jobs]


def _accept(world: DashboardWorld, token: str, password: str, barrier: Barrier) -> str:
    try:
        with psycopg.connect(world.settings.database.url) as connection:
            invitation = invitations.find_invitation(connection, token)
            connection.commit()
            barrier.wait()
            invitations.accept_with_new_password(connection, token, invitation, password)
    except invitations.InvitationExpiredError:
        return "expired"
    except JoinStepChangedError:
        return "changed"
    return "joined"


def _remove(world: DashboardWorld, email: str, barrier: Barrier) -> None:
    with psycopg.connect(world.settings.database.url) as connection:
        ((invited,),) = connection.execute("select id from members where email = %s", (email,))
        member = get_member(connection, world.merchant.id, invited)
        barrier.wait()
        remove_member(connection, member)


def _change(world: DashboardWorld, user: User) -> None:
    with psycopg.connect(world.settings.database.url) as connection:
        change_password(connection, user, CHOSEN, kept=b"")


def _waiting(world: DashboardWorld) -> int:
    return count_lock_waits(world.database)


def _invite(pages: DashboardWorld, merchant: Merchant | None = None) -> str:
    """Invite EMAIL as an owner of the merchant, without mail, and return the path of the link that is shown."""
    owner = pages.person(Role.OWNER, merchant)
    owner.open("/team")
    owner.post("/team/invite", email=EMAIL, role="developer")
    return find_link(owner.response.text)


def _invite_by_hand(world: DashboardWorld, merchant: Merchant) -> str:
    """Return the path of a link that was not mailed, although the dashboard has mail."""
    return f"/invitations/{_token(world, merchant, EMAIL)}"


def _mail(world: DashboardWorld, mailbox: Mailbox, merchant: Merchant | None = None) -> str:
    """Invite EMAIL as an owner of the merchant, and return the path of the link in the mail."""
    owner = world.person(Role.OWNER, merchant)
    owner.open("/team")
    owner.post("/team/invite", email=EMAIL, role="developer")
    assert "/invitations/" not in owner.response.text
    return mailbox.link()


def _join(world: DashboardWorld, link: str, password: str) -> PageClient:
    """Join in a new browser, which is signed in then."""
    person = world.person()
    person.open(link)
    assert person.post(link, password=password).url == f"{world.url}/"
    assert person.open("/account").url == f"{world.url}/account"
    return person


def _is_verified(world: DashboardWorld) -> bool:
    with world.database.cursor() as cursor:
        members = find_members_by_email(cursor, EMAIL)
    assert members
    assert members[0].user is not None
    return members[0].user.is_verified
