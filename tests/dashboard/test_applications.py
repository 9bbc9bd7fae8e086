"""The list of a merchant's applications, and creating one, with credentials that are shown once."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import requests

from shared.domain.accounts.roles import Role
from shared.domain.applications.merchants import create_merchant
from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.platform.settings import WebhookSettings
from shared.platform.tokens import hash_token, token_prefix
from tests.clock import Clock
from tests.dashboard.world import DashboardWorld, Merchant
from tests.logs import capture_logs
from tests.page_client import PageClient

_SECRET = re.compile(r"(?<![\w-])(?:pk_test_|pk_live_|at_|whsec_)[A-Za-z0-9]{32}(?![\w-])")


def find_secrets(page: str) -> list[str]:
    """Return the API key, the access token and the webhook secret. An example repeats the first two."""
    return list(dict.fromkeys(_SECRET.findall(page)))


def create(person: PageClient, **fields: Any) -> requests.Response:
    """Open the form and submit it, as a browser does."""
    person.open("/applications/new")
    return send(person, **fields)


def send(person: PageClient, **fields: Any) -> requests.Response:
    values = {"name": "Online shop", "methods": ["card", "sadad"], "url": "https://shop.example.ly/hook"}
    return person.post("/applications/new", **{**values, **fields})


def test_list_contains_only_the_merchants_own_applications(pages: DashboardWorld) -> None:
    other = pages.make_merchant("Misrata Books")
    owner = pages.person(Role.OWNER)
    owner.open("/")
    assert owner.title == "Applications"
    assert "Tripoli Coffee shop Live mode Bank card Sadad Adfali https://shop.example.ly/hooks" in owner.text
    assert f'href="/applications/{pages.application.id}"' in owner.response.text
    assert "Misrata" not in owner.text
    assert str(other.application.id) not in owner.response.text


@pytest.mark.parametrize(("role", "may_create"), [(Role.OWNER, True), (Role.DEVELOPER, False)])
def test_an_empty_list_says_what_to_do(pages: DashboardWorld, role: Role, may_create: bool) -> None:
    with pages.database.transaction() as connection:
        merchant = Merchant(create_merchant(connection, "Misrata Books"), "Misrata Books", pages.application)
    person = pages.person(role, merchant)
    person.open("/")
    assert "There are no applications yet" in person.text
    assert ("Create an application" in person.text) is may_create
    assert ("An owner of your team can create one." in person.text) is not may_create


@pytest.mark.parametrize(
    ("fields", "mode"), [({}, "test"), ({"mode": "live"}, "live"), ({"mode": "Live"}, "test")]
)
def test_an_application_is_created_with_working_credentials(
    pages: DashboardWorld, fields: dict[str, str], mode: str
) -> None:
    owner = pages.person(Role.OWNER)
    answer = create(owner, **fields)
    assert (answer.status_code, owner.title) == (200, "The application was created")
    key, token, secret = find_secrets(answer.text)
    assert (key[:8], token[:3], secret[:6]) == (f"pk_{mode}_", "at_", "whsec_")
    assert answer.text.count("data-copy ") == 4
    assert "shown this once" in owner.text
    ((made, url, merchant, made_mode),) = pages.rows(
        "select id, webhook_url, merchant_id, mode from applications where name = 'Online shop'"
    )
    assert (url, merchant, made_mode) == ("https://shop.example.ly/hook", pages.merchant.id, mode)
    hashes = pages.rows("select hash from credentials where application_id = %s order by kind", made)
    assert hashes == [(hash_token(token),), (hash_token(key),)]
    methods = pages.rows("select method from application_methods where application_id = %s order by 1", made)
    assert methods == [("card",), ("sadad",)]
    with pages.database.transaction() as connection:
        assert decrypt_webhook_secret(connection, pages.box, made, 1).text == secret
    ((details,),) = pages.rows("select details from audit_log where action = 'application_created'")
    assert details == {
        "name": "Online shop",
        "mode": mode,
        "methods": ["card", "sadad"],
        "url": "https://shop.example.ly/hook",
    }


def test_secrets_of_a_new_application_are_shown_once(pages: DashboardWorld) -> None:
    """Not on later pages, in the audit log or in the log of the service."""
    with capture_logs(level="DEBUG") as log:
        owner = pages.person(Role.OWNER)
        secrets = find_secrets(create(owner).text)
        ((made,),) = pages.rows("select id from applications where name = 'Online shop'")
        seen = [
            owner.open(path).text
            for path in (
                "/",
                f"/applications/{made}/credentials",
                f"/applications/{made}/webhook",
                f"/applications/{made}/settings",
                "/audit",
            )
        ]
    kept = str(pages.rows("select audit_log::text from audit_log"))
    assert len(secrets) == 3
    for secret in secrets:
        assert secret not in kept
        assert secret not in log.getvalue()
        assert not any(secret in page for page in seen)
    assert f"{token_prefix(secrets[0])}…" in seen[1]


def test_form_sent_twice_creates_one_application(pages: DashboardWorld) -> None:
    """The second response says where to continue."""
    owner = pages.person(Role.OWNER)
    owner.open("/applications/new")
    form = owner.response
    send(owner)
    owner.response = form
    answer = send(owner, name="Another name")
    assert (answer.history[0].status_code, owner.title) == (303, "Credentials")
    assert "exists already" in owner.text
    assert not _SECRET.search(answer.text)
    assert pages.rows("select count(*) from applications") == [(2,)]
    assert pages.audit().count("application_created") == 1


def test_form_sent_twice_concurrently_creates_one_application(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    owner.open("/applications/new")
    data = {**owner.hidden("/applications/new"), "name": "Online shop", "methods": "card"}
    cookies = owner.session.cookies.get_dict()

    def press(_: int) -> str:
        return requests.post(f"{pages.url}/applications/new", data, cookies=cookies, timeout=30).text

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(press, range(4)))
    assert sum(bool(_SECRET.search(answer)) for answer in answers) == 1
    assert pages.rows("select count(*) from applications where name = 'Online shop'") == [(1,)]
    assert pages.rows("select count(*) from credentials") == [(4,)]


def test_form_token_of_another_merchant_creates_nothing(pages: DashboardWorld) -> None:
    """Used or not."""
    other = pages.make_merchant("Misrata Books")
    them, us = pages.person(Role.OWNER, other), pages.person(Role.OWNER)
    them.open("/applications/new")
    form_token = them.hidden("/applications/new")["form_token"]
    assert create(us, form_token=form_token).status_code == 404
    assert create(them, form_token=form_token).status_code == 200
    assert create(us, form_token=form_token).status_code == 404
    assert pages.rows("select count(*) from applications where name = 'Online shop'") == [(1,)]


def test_invalid_form_token_is_refused(pages: DashboardWorld) -> None:
    """The input is kept, and the new form has a valid token."""
    owner = pages.person(Role.OWNER)
    for form_token in ("", "x", "ÿ\x00", "gAAAAABm", "018f0000-0000-7000-8000-000000000000"):
        answer = create(owner, form_token=form_token, name="متجر")
        assert answer.status_code == 422, form_token
        assert "open for too long" in owner.text, form_token
        assert 'value="متجر"' in answer.text, form_token
        assert send(owner, name="متجر").status_code == 200, form_token


def test_form_that_was_open_for_hours_is_refused(
    pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its token has expired."""
    owner = pages.person(Role.OWNER)
    owner.open("/applications/new")
    monkeypatch.setattr("services.dashboard.applications.form_tokens._VALID_FOR_S", -1)
    assert send(owner).status_code == 422
    assert pages.rows("select count(*) from applications") == [(1,)]


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"name": ""}, "Choose a name of 1 to 200"),
    ({"name": "   "}, "Choose a name of 1 to 200"),
    ({"name": "x" * 201}, "Choose a name of 1 to 200"),
    ({"name": "a\x00b"}, "Choose a name of 1 to 200"),
    ({"name": "a\nb"}, "Choose a name of 1 to 200"),
    ({"name": "a\u2028b"}, "Choose a name of 1 to 200"),
    ({"methods": []}, "Choose at least one payment method"),
    ({"methods": ["paypal", "card\x00"]}, "Choose at least one payment method"),
    ({"url": "javascript:alert(1)"}, "must begin with https://"),
    ({"url": "https://shop.example.ly/\x00"}, "a character that is not allowed"),
    ({"url": "https://shop.example.ly/" + "a" * 3000}, "too long"),
)


def test_errors_are_shown_beside_their_field(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    for fields, told in WRONG:
        answer = create(owner, **fields)
        assert answer.status_code == 422, fields
        assert told in owner.text, fields
        assert answer.text.count('class="error"') == 1, fields
    assert pages.rows("select count(*) from applications") == [(1,)]
    assert "application_created" not in pages.audit()


def test_all_errors_are_shown_at_once_and_the_input_stays(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    answer = create(owner, name="", methods=[], url="ftp://shop.example.ly")
    assert answer.text.count('class="error"') == 3
    assert 'value="ftp://shop.example.ly"' in answer.text
    assert answer.text.count(" checked") == 1  # the mode
    answer = send(owner, name="Online shop", methods=["adfali"], url="")
    assert answer.status_code == 200
    assert pages.rows("select webhook_url from applications where name = 'Online shop'") == [(None,)]


def test_invalid_utf8_causes_no_server_error(pages: DashboardWorld) -> None:
    """A lone surrogate in UTF-8, as only a broken program sends it."""
    owner = pages.person(Role.OWNER)
    owner.open("/applications/new")
    hidden = owner.hidden("/applications/new")
    body = (
        f"csrf_token={hidden['csrf_token']}&form_token={hidden['form_token']}&methods=card&name=".encode()
        + b"%ED%B3%BF"
    )
    answer = owner.session.post(
        f"{pages.url}/applications/new",
        body,
        headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"},
        timeout=30,
    )
    assert answer.status_code < 500
    assert owner.open("/").status_code == 200


def test_hostile_application_name_is_escaped(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    name = "<script>alert(1)</script>\"'{{ 7*7 }}"
    create(owner, name=name)
    assert "<script>alert" not in owner.response.text
    owner.open("/")
    assert name in owner.text
    assert "<script>alert" not in owner.response.text


def test_private_webhook_url_is_refused_outside_of_development(world: DashboardWorld) -> None:
    world.settings = replace(world.settings, webhooks=WebhookSettings())
    with world.serve():
        owner = world.person(Role.OWNER)
        for url, told in [
            ("https://10.0.0.1/", "must have a public address"),
            ("https://localhost/", "must have a public host name"),
            ("http://shop.example.ly/", "must begin with https://"),
        ]:
            assert create(owner, url=url).status_code == 422
            assert told in owner.text


def test_applications_are_listed_oldest_first(pages: DashboardWorld, clock: Clock) -> None:
    owner = pages.person(Role.OWNER)
    for name in ("Zuwara", "Awjila"):
        clock.advance(timedelta(minutes=1))
        create(owner, name=name)
    owner.open("/")
    assert owner.text.index("Tripoli Coffee shop") < owner.text.index("Zuwara") < owner.text.index("Awjila")
