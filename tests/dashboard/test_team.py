"""The team: owners invite members, change roles and remove members. There is always an owner."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from uuid import uuid4

import psycopg
import pytest

from services.dashboard.people import invitations
from shared.domain.accounts.roles import Role
from stack.ports import find_free_ports
from tests.clock import Clock
from tests.dashboard.mailbox import Mailbox, mail_through
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient

CHOSEN = "seven small boats at sea"
_LINK = re.compile(r"http://[^\s<\"]+/invitations/inv_\w+")


def test_invited_developer_chooses_a_password_and_is_signed_in(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    link = _invite(owner, "Dev@Example.ly", "developer")
    invited = pages.person()
    invited.open(link)
    assert "Tripoli Coffee invites dev@example.ly" in invited.text
    assert invited.post(link, password="too short").status_code == 422
    assert invited.post(link, password="password1234").status_code == 422
    assert "Many people use this password" in invited.text
    invited.post(link, password=CHOSEN)
    assert invited.response.url == f"{pages.url}/"
    assert "dev@example.ly" in invited.text
    again = pages.person()
    assert again.sign_in("dev@example.ly", CHOSEN).url == f"{pages.url}/"
    assert pages.audit() == ["signed_in", "member_invited", "member_joined", "signed_in", "signed_in"]


def test_an_invitation_works_once(pages: DashboardWorld) -> None:
    link = _invite(pages.person(Role.OWNER), "dev@example.ly")
    first, late = pages.person(), pages.person()
    first.open(link)
    late.open(link)
    first.post(link, password=CHOSEN)
    assert late.post(link, password="another password here").status_code == 410
    assert late.title == "This invitation is no longer valid"
    assert late.open(link).status_code == 410
    assert pages.person().sign_in("dev@example.ly", CHOSEN).status_code == 200


def test_invitation_link_used_concurrently_works_once(pages: DashboardWorld) -> None:
    link = _invite(pages.person(Role.OWNER), "dev@example.ly")
    people = [pages.person() for _ in range(6)]
    for person in people:
        person.open(link)
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda person: person.post(link, password=f"{CHOSEN} {uuid4()}"), people))
    assert sorted(answer.status_code for answer in answers) == [200] + [410] * 5


def test_an_invitation_expires_after_seven_days(pages: DashboardWorld, clock: Clock) -> None:
    link = _invite(pages.person(Role.OWNER), "dev@example.ly")
    clock.advance(timedelta(days=7, seconds=1))
    assert pages.person().open(link).status_code == 410


def test_new_invitation_link_invalidates_the_old_one(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    old = _invite(owner, "dev@example.ly")
    person = pages.rows("select id from members where email = 'dev@example.ly'")[0][0]
    owner.open("/team")
    owner.post(f"/team/{person}/invite")
    new = _path(_LINK.findall(owner.response.text)[0])
    assert pages.person().open(old).status_code == 410
    assert pages.person().open(new).status_code == 200


def test_a_removed_member_cannot_join(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    link = _invite(owner, "dev@example.ly")
    _remove(pages, owner, "dev@example.ly")
    assert pages.person().open(link).status_code == 410


def test_unknown_invitation_link_is_refused(pages: DashboardWorld) -> None:
    for link in ("inv_unknown", "x", "inv_%00", "%ff", "inv_" + "a" * 5000):
        assert pages.person().open(f"/invitations/{link}").status_code == 410, link


def test_an_invalid_email_address_cannot_be_invited(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    for email in (
        "",
        "no address",
        "a@b@c",
        "a\0@b.ly",
        "x" * 250 + "@b.ly",
        "<a@b.ly>",
        "a\n@b.ly",
        "=?utf-8?q?a=40b.ly?=@x.ly",
    ):
        owner.open("/team")
        assert owner.post("/team/invite", email=email, role="viewer").status_code == 422, email
        assert "This is not an email address." in owner.text, email


def test_email_can_be_invited_once_into_each_team(pages: DashboardWorld) -> None:
    """Nobody learns that another merchant has a member with this email address."""
    other = pages.person(Role.OWNER, pages.make_merchant("Benghazi Books"))
    owner = pages.person(Role.OWNER)
    assert _invite(other, "dev@example.ly")
    assert _invite(owner, "dev@example.ly")
    owner.open("/team")
    assert owner.post("/team/invite", email="DEV@example.ly", role="viewer").status_code == 422
    assert "is already in your team" in owner.text


def test_a_removed_member_is_signed_out_at_once(pages: DashboardWorld) -> None:
    owner, email = pages.person(Role.OWNER), pages.make_member(Role.DEVELOPER)
    removed = pages.person()
    removed.sign_in(email, "correct horse battery staple")
    _remove(pages, owner, email)
    assert removed.open("/account").url.startswith(f"{pages.url}/sign-in")
    assert pages.person().sign_in(email, "correct horse battery staple").status_code == 422
    assert _invite(owner, email), "they can be invited again"


def test_owner_revokes_the_credentials_that_a_removed_member_issued(pages: DashboardWorld) -> None:
    """They are listed on the page that the removal leads to, and stay listed until they are revoked."""
    owner, email = pages.person(Role.OWNER), pages.make_member(Role.DEVELOPER)
    removed = pages.person()
    removed.sign_in(email, "correct horse battery staple")
    issued = [_issue(pages, removed, kind) for kind in ("api_key", "access_token")]
    kept = _issue(pages, owner, "api_key")
    owner.open("/team")
    assert "Credentials of former members" not in owner.text
    _remove(pages, owner, email)
    assert "API credentials that they issued still work" in owner.text
    for _credential, prefix in issued:
        assert f"{prefix}…" in owner.text
    assert f"{kept[1]}…" not in owner.text
    arab = pages.person(Role.OWNER, lang="ar")
    arab.open("/team")
    assert "بيانات اعتماد الأعضاء السابقين" in arab.text
    owner.post("/team/credentials", credential=issued[0][0])
    assert "Revoked: 1." in owner.text
    assert _active(pages, [issued[0], issued[1], kept]) == [False, True, True]
    assert f"{issued[1][1]}…" in owner.text
    owner.post("/team/credentials", credential=issued[1][0])
    assert "Credentials of former members" not in owner.text
    assert pages.audit()[-3:] == ["signed_in", "credential_revoked", "credential_revoked"]


def test_first_credentials_of_an_application_are_issued_by_who_created_it(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.OWNER)
    creator, owner = pages.person(), pages.person(Role.OWNER)
    creator.sign_in(email, "correct horse battery staple")
    creator.open("/applications/new")
    creator.post("/applications/new", name="Second shop", methods="card")
    _remove(pages, owner, email)
    assert owner.text.count("Second shop") == 2


def test_only_credentials_of_former_members_of_the_own_team_can_be_revoked_together(
    pages: DashboardWorld,
) -> None:
    other = pages.make_merchant("Benghazi Books")
    stranger, email = pages.person(Role.OWNER, other), pages.make_member(Role.DEVELOPER)
    owner, developer, removed = pages.person(Role.OWNER), pages.person(Role.DEVELOPER), pages.person()
    removed.sign_in(email, "correct horse battery staple")
    issued, current = _issue(pages, removed, "api_key"), _issue(pages, developer, "api_key")
    _remove(pages, owner, email)
    stranger.open("/team")
    assert "Credentials of former members" not in stranger.text
    stranger.post("/team/credentials", credential=issued[0])
    owner.post("/team/credentials", credential=current[0])
    assert "No credential was selected." in owner.text
    developer.open("/team")
    assert "Credentials of former members" not in developer.text
    assert developer.post("/team/credentials", credential=issued[0]).status_code == 403
    assert _active(pages, [issued, current]) == [True, True]


def test_changed_role_takes_effect_at_once(pages: DashboardWorld) -> None:
    owner, email = pages.person(Role.OWNER), pages.make_member(Role.OWNER)
    other = pages.person()
    other.sign_in(email, "correct horse battery staple")
    owner.open("/team")
    owner.post(f"/team/{_id(pages, email)}/role", role="viewer")
    other.open("/team")
    assert other.post("/team/invite", email="x@example.ly", role="owner").status_code == 403


def test_last_owner_cannot_be_removed_or_demoted(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.OWNER)
    owner = pages.person()
    owner.sign_in(email, "correct horse battery staple")
    _invite(owner, "owner-to-be@example.ly", "owner")  # an invited owner does not count
    for action, fields in (("role", {"role": "viewer"}), ("remove", {})):
        owner.open("/team")
        owner.post(f"/team/{_id(pages, email)}/{action}", **fields)
        assert "no owner left" in owner.text
    assert owner.open("/account").url == f"{pages.url}/account"


def test_two_owners_cannot_remove_each_other(pages: DashboardWorld) -> None:
    for _ in range(5):
        merchant = pages.make_merchant("Race")
        emails = [pages.make_member(Role.OWNER, merchant) for _ in range(2)]
        owners = [pages.person(), pages.person()]
        for owner, email in zip(owners, emails, strict=True):
            owner.sign_in(email, "correct horse battery staple")
            owner.open("/team")
        with ThreadPoolExecutor(2) as threads:
            list(
                threads.map(
                    lambda pair: pair[0].post(f"/team/{_id(pages, pair[1])}/remove"),
                    zip(owners, reversed(emails), strict=True),
                )
            )
        left = "select count(*) from members where merchant_id = %s and removed_at is null"
        assert pages.rows(left, merchant.id) == [(1,)]


def test_members_of_other_merchants_cannot_be_changed(pages: DashboardWorld) -> None:
    stranger = _id(pages, pages.make_member(Role.VIEWER, pages.make_merchant("Benghazi Books")))
    owner = pages.person(Role.OWNER)
    owner.open("/team")
    assert owner.post(f"/team/{stranger}/role", role="owner").status_code == 404
    assert owner.post(f"/team/{stranger}/invite").status_code == 404
    owner.open("/team")
    owner.post(f"/team/{stranger}/remove")
    assert pages.rows("select removed_at from members where id = %s", stranger) == [(None,)]


def test_team_has_a_limited_number_of_open_invitations(
    pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is accepted or removed makes room. Other teams have their own limit."""
    monkeypatch.setattr(invitations, "MAX_OPEN", 2)
    owner = pages.person(Role.OWNER)
    accepted = _invite(owner, "a@example.ly")
    _invite(owner, "b@example.ly")
    _refuse_invitation(owner, "c@example.ly", "Your team has too many open invitations.")
    assert pages.rows("select from members where email = 'c@example.ly'") == []
    invited = pages.person()
    invited.open(accepted)
    invited.post(accepted, password=CHOSEN)
    _invite(owner, "c@example.ly")
    _refuse_invitation(owner, "d@example.ly", "Your team has too many open invitations.")
    _remove(pages, owner, "b@example.ly")
    _invite(owner, "d@example.ly")
    other = pages.person(Role.OWNER, pages.make_merchant("Benghazi Books"))
    assert _invite(other, "c@example.ly")


def test_team_makes_a_limited_number_of_invitations_a_day(
    pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """New links for the same person count, and so do members that were removed. A day later it works."""
    monkeypatch.setattr(invitations, "MAX_PER_DAY", 3)
    clock.stop_at(datetime.now(UTC))
    owner = pages.person(Role.OWNER)
    _invite(owner, "a@example.ly")
    again = f"/team/{_id(pages, 'a@example.ly')}/invite"
    owner.post(again)
    _invite(owner, "b@example.ly")
    _remove(pages, owner, "b@example.ly")
    told = "Your team has made too many invitations within a day. Try again tomorrow."
    _refuse_invitation(owner, "c@example.ly", told)
    links = pages.rows("select count(*) from one_time_codes")
    owner.open("/team")
    owner.post(again)
    assert told in owner.text
    assert pages.rows("select count(*) from one_time_codes") == links
    clock.advance(timedelta(days=1))
    assert pages.audit().count("member_invited") == 3
    _invite(pages.person(Role.OWNER), "c@example.ly")


def test_concurrent_invitations_do_not_exceed_the_limit(
    pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invitations, "MAX_OPEN", 3)
    barrier = Barrier(8)

    def invite(number: int) -> bool:
        with psycopg.connect(pages.settings.database.url) as connection:
            barrier.wait()
            try:
                return bool(
                    invitations.invite(connection, pages.merchant.id, f"{number}@example.ly", Role.VIEWER)
                )
            except invitations.TooManyOpenInvitationsError:
                return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(invite, range(8))) == 3


def _refuse_invitation(owner: PageClient, email: str, why: str) -> None:
    owner.open("/team")
    assert owner.post("/team/invite", email=email, role="viewer").status_code == 422
    assert why in owner.text


def test_invitation_is_mailed_if_a_mail_server_is_configured(world: DashboardWorld, mailbox: Mailbox) -> None:
    """The owner does not see the link: whoever has it owns the address."""
    with world.serve():
        owner = world.person(Role.OWNER)
        owner.open("/team")
        owner.post("/team/invite", email="dev@example.ly", role="developer")
        assert "The invitation was mailed to dev@example.ly." in owner.text
        assert _LINK.findall(owner.response.text) == []
        (mail,) = mailbox.mails
        assert (mail["To"], mail["From"]) == ("dev@example.ly", "mizan@example.ly")
        assert mailbox.link().startswith("/invitations/inv_")


def test_invitation_that_cannot_be_mailed_still_shows_its_link(world: DashboardWorld) -> None:
    mail_through(world, find_free_ports(1)[0])
    with world.serve():
        owner = world.person(Role.OWNER)
        assert _invite(owner, "dev@example.ly")
        assert "could not be mailed" in owner.text
        assert world.rows("select is_emailed from one_time_codes") == [(False,)], "it proves nothing"


def _invite(owner: PageClient, email: str, role: str = "developer") -> str:
    owner.open("/team")
    assert owner.post("/team/invite", email=email, role=role).status_code == 200
    return _path(_LINK.findall(owner.response.text)[0])


def _path(link: str) -> str:
    return "/" + link.split("/", 3)[3]


def _remove(pages: DashboardWorld, owner: PageClient, email: str) -> None:
    owner.open("/team")
    owner.post(f"/team/{_id(pages, email)}/remove")
    assert f"{email} was removed" in owner.text


def _id(pages: DashboardWorld, email: str) -> str:
    return str(pages.rows("select id from members where email = %s and removed_at is null", email)[0][0])


def _issue(pages: DashboardWorld, person: PageClient, kind: str) -> tuple[str, str]:
    """Issue a credential in the dashboard, and return its id and prefix."""
    path = f"/applications/{pages.application.id}/credentials"
    person.open(path)
    assert person.post(f"{path}/{kind}").status_code == 200
    found = pages.rows("select id, prefix from credentials order by id desc limit 1")[0]
    return str(found[0]), found[1]


def _active(pages: DashboardWorld, credentials: list[tuple[str, str]]) -> list[bool]:
    query = "select revoked_at is null from credentials where id = %s"
    return [pages.rows(query, credential)[0][0] for credential, _prefix in credentials]
