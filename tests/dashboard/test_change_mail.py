"""Every owner is told of security changes by mail: what, who, when and from where, and no secret."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from services.dashboard.access import record_action
from services.dashboard.applications import webhook_views
from services.dashboard.people.mail import Mail, MailQueue
from shared.console.audit_log import ACTIONS
from shared.domain.accounts.roles import Role
from shared.domain.audit_log import Action
from shared.domain.security_changes import MAX_MAILED_PER_HOUR
from shared.platform.web.languages import format_time
from stack.ports import find_free_ports
from tests.clock import Clock
from tests.dashboard.mailbox import Mailbox, mail_through
from tests.dashboard.sensitive_changes import SECRETS, make_change
from tests.dashboard.test_password_prompt import SENSITIVE
from tests.dashboard.world import PASSWORD, DashboardWorld
from tests.logs import capture_logs
from tests.page_client import PageClient
from tests.waiting import eventually

_SECRET = re.compile(r"(?:pk|at|whsec|inv)_\w{20,}")
_NEW_PASSWORD = "seven small boats at sea"


@pytest.fixture
def queued(world: DashboardWorld, monkeypatch: pytest.MonkeyPatch) -> list[Mail]:
    """The mails that were queued, in place of a mail server."""
    mail_through(world, 9)
    mails: list[Mail] = []
    monkeypatch.setattr(MailQueue, "add", lambda _queue, mail: mails.append(mail))
    return mails


@pytest.fixture
def mailing(world: DashboardWorld, queued: list[Mail]) -> Iterator[DashboardWorld]:
    """A `world` whose pages queue mails in `queued`."""
    assert queued == []
    with world.serve():
        yield world


@pytest.mark.parametrize("endpoint", SENSITIVE)
def test_every_owner_is_mailed_each_sensitive_change(
    mailing: DashboardWorld, queued: list[Mail], endpoint: str
) -> None:
    change = make_change(mailing, endpoint)
    other = mailing.make_member(Role.OWNER)
    mailing.make_member(Role.OWNER, mailing.make_merchant("Benghazi Books"))
    email = mailing.make_member(Role.OWNER)
    owner = mailing.person()
    owner.sign_in(email, PASSWORD)
    shown = change.submit(owner).text
    expected = {email, other}
    if endpoint == "people.change_role":
        expected |= {
            address
            for (address,) in mailing.rows(
                "select email from members where role = 'owner' "
                "and merchant_id = %s and joined_at is not null",
                mailing.merchant.id,
            )
        }
    assert {mail.to for mail in queued} == expected
    assert len(queued) == len(expected)
    text = queued[0].text
    ((at, address),) = mailing.rows(
        "select at, address from audit_log where action = %s order by id desc limit 1", change.action
    )
    assert str(ACTIONS[Action(change.action)]) in text
    for what in (
        f"Who: {email}",
        f"Address: {address}",
        format_time(at, "en"),
        format_time(at, "ar"),
        mailing.url,
    ):
        assert what in text
    assert "تغييرات أمنية في لوحة ميزان" in text
    secrets = [*SECRETS.values(), PASSWORD, *_SECRET.findall(shown)]
    assert not [secret for secret in secrets if secret in text]


def test_password_of_several_merchants_is_mailed_to_each_apart(
    mailing: DashboardWorld, queued: list[Mail]
) -> None:
    """The owners of one merchant do not learn where else the person works."""
    books = mailing.make_merchant("Benghazi Books")
    other_owner = mailing.make_member(Role.OWNER, books)
    email = mailing.make_member(Role.OWNER)
    mailing.make_member(Role.VIEWER, books, email)
    person = mailing.person()
    person.sign_in(email, PASSWORD)
    ((member,),) = mailing.rows(
        "select id from members where email = %s and merchant_id = %s", email, mailing.merchant.id
    )
    person.post("/sign-in/merchant", member=str(member))
    person.open("/account")
    person.post("/account/password", current_password=PASSWORD, new_password=_NEW_PASSWORD)
    assert {mail.to for mail in queued} == {email, other_owner}
    names = {"Tripoli Coffee", "Benghazi Books"}
    for mail in queued:
        expected = "Benghazi Books" if mail.to == other_owner else "Tripoli Coffee"
        assert {name for name in names if name in mail.text} == {expected}


def test_mail_names_the_application_and_only_the_host_of_a_url(
    mailing: DashboardWorld, queued: list[Mail]
) -> None:
    """A webhook URL can contain a secret."""
    _set_url(mailing, mailing.person(Role.OWNER), "https://hooks.example.ly/t0k3n?key=k3y")
    (mail,) = queued
    assert "Application: Tripoli Coffee shop" in mail.text
    assert "URL: hooks.example.ly\n" in mail.text
    assert not [secret for secret in ("t0k3n", "k3y") if secret in mail.text]


def test_changed_password_and_new_member_are_mailed(mailing: DashboardWorld, queued: list[Mail]) -> None:
    owner, member = mailing.make_member(Role.OWNER), mailing.person(Role.VIEWER)
    member.open("/account")
    member.post("/account/password", current_password=PASSWORD, new_password=_NEW_PASSWORD)
    assert [mail.to for mail in queued] == [owner]
    assert "Changed their password" in queued[0].text
    assert _NEW_PASSWORD not in queued[0].text
    inviting, joining = mailing.person(), mailing.person()
    inviting.sign_in(owner, PASSWORD)
    inviting.open("/team")
    inviting.post("/team/invite", email="new@example.ly", role="owner")
    link = re.findall(r"/invitations/inv_\w+", inviting.response.text)[0]
    joining.open(link)
    joining.post(link, password=_NEW_PASSWORD)
    assert "Joined the team" in queued[-1].text
    assert sorted(mail.to for mail in queued[-2:]) == sorted([owner, "new@example.ly"])


@pytest.mark.parametrize(("action", "fields"), [("role", {"role": "viewer"}), ("remove", {})])
def test_owner_who_is_demoted_or_removed_is_mailed(
    mailing: DashboardWorld, queued: list[Mail], action: str, fields: dict[str, str]
) -> None:
    victim, owner = mailing.make_member(Role.OWNER), mailing.person(Role.OWNER)
    ((victim_id,),) = mailing.rows("select id from members where email = %s", victim)
    owner.open("/team")
    owner.post(f"/team/{victim_id}/{action}", **fields)
    assert victim in {mail.to for mail in queued}
    _set_url(mailing, owner, "https://hooks.example.ly/")
    assert queued[-1].to != victim
    assert len(queued) == 3


def test_refused_and_rolled_back_changes_are_not_mailed(
    mailing: DashboardWorld, queued: list[Mail], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = mailing.person(Role.OWNER)
    _set_url(mailing, owner, "not a url")
    _set_url(mailing, owner, "https://shop.example.ly/hooks")  # it is so already

    def record_and_fail(*arguments: object, **named: object) -> None:
        record_action(*arguments, **named)  # type: ignore[arg-type]
        raise RuntimeError("the transaction is rolled back")

    monkeypatch.setattr(webhook_views, "record_action", record_and_fail)
    _set_url(mailing, owner, "https://hooks.example.ly/")
    assert owner.response.status_code == 500
    assert queued == []


def test_ten_changes_an_hour_are_mailed_and_the_last_says_so(
    mailing: DashboardWorld, queued: list[Mail], clock: Clock
) -> None:
    owner = mailing.person(Role.OWNER)
    hour = clock.now().replace(minute=0, second=0, microsecond=0)
    clock.stop_at(hour)
    owner.open("/account")
    for number in range(MAX_MAILED_PER_HOUR + 2):
        _set_url(mailing, owner, f"https://hooks.example.ly/{number}")
    assert len(queued) == MAX_MAILED_PER_HOUR
    told = ["No more changes are mailed within this hour." in mail.text for mail in queued]
    assert told == [False] * (MAX_MAILED_PER_HOUR - 1) + [True]
    _set_url(mailing, *_owner_of_another(mailing))
    assert len(queued) == MAX_MAILED_PER_HOUR + 1
    clock.stop_at(hour + timedelta(hours=1))
    _set_url(mailing, mailing.person(Role.OWNER), "https://hooks.example.ly/later")
    assert len(queued) == MAX_MAILED_PER_HOUR + 3, "to two owners"
    assert "No more changes" not in queued[-1].text


def test_mail_is_sent_after_the_page_was_answered(world: DashboardWorld, mailbox: Mailbox) -> None:
    """A mail server that takes long holds up nobody."""
    mailbox.accepts.clear()
    with world.serve():
        owner = world.person(Role.OWNER)
        _set_url(world, owner, "https://hooks.example.ly/")
        assert (owner.response.status_code, owner.title) == (200, "Webhook")
        assert mailbox.mails == []
        mailbox.accepts.set()
        eventually(lambda: mailbox.mails)
    (mail,) = mailbox.mails
    assert mail["Subject"] == "تغيير أمني في ميزان · A security change in Mizan"
    assert "Set the webhook URL" in mail.get_content()


def test_mail_server_that_is_down_does_not_fail_the_change(world: DashboardWorld) -> None:
    mail_through(world, find_free_ports(1)[0])
    with world.serve(), capture_logs() as log:
        owner = world.person(Role.OWNER)
        _set_url(world, owner, "https://hooks.example.ly/")
        assert (owner.response.status_code, owner.title) == (200, "Webhook")
        eventually(lambda: "a mail could not be sent" in log.getvalue())
    assert world.rows("select webhook_url from applications") == [("https://hooks.example.ly/",)]


def _set_url(
    world: DashboardWorld,
    person: PageClient,
    url: str = "https://hooks.example.ly/",
    application: object = None,
) -> None:
    page = f"/applications/{application or world.application.id}/webhook"
    person.open(page)
    person.post(f"{page}/url", url=url)


def _owner_of_another(world: DashboardWorld) -> tuple[PageClient, str, object]:
    other = world.make_merchant("Benghazi Books")
    return world.person(Role.OWNER, other), "https://hooks.example.ly/", other.application.id
