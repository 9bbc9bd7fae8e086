"""Every sensitive change of the dashboard, as its form submits it, and what can be seen of it in the database."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape

import requests

from shared.domain.accounts.roles import Role
from shared.domain.applications.provider_accounts import current_provider_accounts
from shared.domain.payment_methods import PaymentMethod
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient, main_html

PROMPT = "Enter your password to continue"
LONG_SECRET = "hush-" + "x" * 1995
SECRETS = {"api_key": "hush<\"&'>key", "access_token": "hush-token", "secret_key": LONG_SECRET}
_FORM = re.compile(r'<form method="post" action="([^"]*)"(.*?)</form>', re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)"')
_IDS = "select id from members where email = %s and removed_at is null"
_CREDENTIALS = "select id from credentials where revoked_at is null order by id"


@dataclass(frozen=True)
class Change:
    page: str
    """Where its form is."""
    path: str
    query: str
    """Shows the change in the database."""
    expected: object
    """The rows of the query after the change; they are others before it."""
    fields: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    action: str = ""
    """What the audit log calls it."""

    def submit(self, person: PageClient) -> requests.Response:
        person.open(self.page)
        data = {**person.hidden(self.path), **self.fields}
        person.response = person.session.post(
            f"{person.url}{self.path}", data=data, headers={"Accept": "text/html"}, timeout=30
        )
        return person.response

    def rows(self, world: DashboardWorld) -> object:
        return world.rows(self.query)


def enter_password(person: PageClient, password: str) -> requests.Response:
    """Send the form of the prompt, with all its hidden fields, as a browser does."""
    found = _FORM.search(main_html(person.response.text))
    assert found is not None, person.text
    fields = [(unescape(name), unescape(value)) for name, value in _HIDDEN.findall(found[2])]
    person.response = person.session.post(
        f"{person.url}{unescape(found[1])}",
        data=[*fields, ("confirm_password", password)],
        headers={"Accept": "text/html"},
        timeout=30,
    )
    return person.response


def make_change(world: DashboardWorld, endpoint: str) -> Change:
    """Return the change of this route, with what it needs in the database."""
    changes = {**_of_applications(world), **_of_team(world)}
    return changes[endpoint]


def provider_credentials(world: DashboardWorld) -> Mapping[str, str]:
    with world.database.cursor() as cursor:
        account = current_provider_accounts(cursor, world.application.id)[PaymentMethod.CARD]
    return account.decrypt_credentials(world.box)


def _of_applications(world: DashboardWorld) -> dict[str, Change]:
    here = f"/applications/{world.application.id}"
    first = world.rows(_CREDENTIALS)[0][0]
    url = "https://shop.example.ly/%D9%88?a=1&b='2'"
    new = {"name": "مقهى «طرابلس» & Söhne", "methods": ["card", "sadad"], "url": "https://new.example.ly/"}
    provider = f"{here}/settings/providers/card"
    return {
        "applications.create": Change(
            "/applications/new",
            "/applications/new",
            """select name, array(select method from application_methods where application_id = id order by 1)
               from applications order by id desc limit 1""",
            [(new["name"], ["card", "sadad"])],
            new,
            "application_created",
        ),
        "applications.set_provider": Change(
            provider,
            provider,
            "select method, adapter from provider_accounts",
            [("card", "plutu")],
            {"adapter": "plutu", **SECRETS},
            "provider_set",
        ),
        "applications.issue": Change(
            f"{here}/credentials",
            f"{here}/credentials/api_key",
            "select count(*) from credentials",
            [(3,)],
            action="credential_issued",
        ),
        "applications.revoke": Change(
            f"{here}/credentials",
            f"{here}/credentials/{first}/revoke",
            f"select revoked_at is not null from credentials where id = '{first}'",
            [(True,)],
            action="credential_revoked",
        ),
        "applications.set_url": Change(
            f"{here}/webhook",
            f"{here}/webhook/url",
            "select webhook_url from applications",
            [(url,)],
            {"url": url},
            "webhook_url_set",
        ),
        "applications.remove_url": Change(
            f"{here}/webhook",
            f"{here}/webhook/url/remove",
            "select webhook_url from applications",
            [(None,)],
            action="webhook_url_removed",
        ),
        "applications.roll_secret": Change(
            f"{here}/webhook",
            f"{here}/webhook/secret",
            "select max(version) from webhook_secrets",
            [(2,)],
            {"confirmed": "yes"},
            "webhook_secret_rolled",
        ),
    }


def _of_team(world: DashboardWorld) -> dict[str, Change]:
    viewer = world.rows(_IDS, world.make_member(Role.VIEWER))[0][0]
    (invited,) = world.rows(
        "insert into members (merchant_id, email, role) values (%s, 'invited@example.ly', 'viewer') returning id",
        world.merchant.id,
    )[0]
    (former,) = world.rows(
        """insert into members (merchant_id, email, role, removed_at)
           values (%s, 'former@example.ly', 'viewer', mizan_now()) returning id""",
        world.merchant.id,
    )[0]
    world.run("update credentials set issued_by = %s", former)
    kept = [str(row[0]) for row in world.rows(_CREDENTIALS)]
    return {
        "people.invite": Change(
            "/team",
            "/team/invite",
            "select role from members where email = 'new@example.ly'",
            [("developer",)],
            {"email": " New@Example.ly ", "role": "developer"},
            "member_invited",
        ),
        "people.invite_again": Change(
            "/team",
            f"/team/{invited}/invite",
            "select count(*) from one_time_codes",
            [(1,)],
            action="member_invited",
        ),
        "people.change_role": Change(
            "/team",
            f"/team/{viewer}/role",
            f"select role from members where id = '{viewer}'",
            [("owner",)],
            {"role": "owner"},
            "role_changed",
        ),
        "people.remove": Change(
            "/team",
            f"/team/{viewer}/remove",
            f"select removed_at is not null from members where id = '{viewer}'",
            [(True,)],
            action="member_removed",
        ),
        "people.revoke_credentials": Change(
            "/team",
            "/team/credentials",
            "select revoked_at is not null from credentials",
            [(True,), (True,)],
            {"credential": kept},
            "credential_revoked",
        ),
    }
