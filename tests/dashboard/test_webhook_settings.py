"""The webhook URL and secret of an application."""

import re
from dataclasses import replace
from uuid import UUID

import pytest
import requests

from shared.domain.accounts.roles import Role
from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.domain.deliveries.pause import pause_webhooks
from shared.platform.outbound_url import UrlFault
from shared.platform.settings import WebhookSettings
from tests.dashboard.world import WEBHOOK_URL, DashboardWorld
from tests.logs import capture_logs
from tests.page_client import PageClient

_SECRET = re.compile(r"(?<![\w-])whsec_[A-Za-z0-9]{32}(?![\w-])")


def page_of(world: DashboardWorld) -> str:
    return f"/applications/{world.application.id}/webhook"


def set_url(world: DashboardWorld, person: PageClient, url: str) -> requests.Response:
    person.open(page_of(world))
    return person.post(f"{page_of(world)}/url", url=url)


def url_of(world: DashboardWorld) -> str | None:
    ((url,),) = world.rows("select webhook_url from applications where id = %s", world.application.id)
    return None if url is None else str(url)


@pytest.mark.parametrize("role", [Role.OWNER, Role.DEVELOPER])
def test_webhook_url_is_changed_and_removed(pages: DashboardWorld, role: Role) -> None:
    person = pages.person(role)
    answer = set_url(pages, person, " https://new.example.ly/hook\n")
    assert (answer.history[0].status_code, person.title) == (303, "Webhook")
    assert url_of(pages) == "https://new.example.ly/hook"
    assert 'value="https://new.example.ly/hook"' in person.response.text
    assert "The webhook URL was saved." in person.text
    person.post(f"{page_of(pages)}/url/remove")
    assert url_of(pages) is None
    assert "There is no URL, so no webhooks are sent." in person.text
    assert "Remove URL" not in person.response.text
    set_url(pages, person, "https://new.example.ly/hook")
    set_url(pages, person, "https://new.example.ly/hook")
    rows = pages.rows("select action, details from audit_log where action like 'webhook_url%%' order by id")
    assert rows == [
        ("webhook_url_set", {"url": "https://new.example.ly/hook", "before": WEBHOOK_URL}),
        ("webhook_url_removed", {"before": "https://new.example.ly/hook"}),
        ("webhook_url_set", {"url": "https://new.example.ly/hook", "before": None}),
    ]


def test_the_page_explains_what_happens_to_queued_retries(pages: DashboardWorld) -> None:
    person = pages.person(Role.DEVELOPER)
    person.open(page_of(pages))
    assert "Retries that are queued already still go to the old one." in person.text
    assert "What is queued ends as failed when it falls due." in person.text
    assert "retries queued earlier carry the old one. Let your server accept both for a day." in person.text
    question = person.response.text.partition("/webhook/secret")[2].partition(">")[0]
    assert "Deliveries that are queued now, and their retries, keep the old one" in question


def test_secret_is_rolled_only_after_a_page_that_asks(pages: DashboardWorld) -> None:
    """Without the script. The page says what happens to what is queued, and how much that is."""
    pages.run(
        """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, next_due_at)
           values (uuidv7(), gen_random_uuid(), %s, 'payment_intent.succeeded', 'https://x.example', 1, mizan_now())""",
        pages.application.id,
    )
    person = pages.person(Role.OWNER)
    person.open(page_of(pages))
    answer = person.post(f"{page_of(pages)}/secret")
    assert (answer.status_code, person.title) == (200, "Roll the webhook secret?")
    assert "Nothing was changed yet." in person.text
    assert "stay signed with the secret that they started with" in person.text
    assert "Queued now 1 delivery" in person.text
    assert pages.rows("select webhook_secret_version from applications") == [(1,)]
    assert "webhook_secret_rolled" not in pages.audit()
    person.post(f"{page_of(pages)}/secret")
    assert person.title == "The new webhook secret"
    assert pages.rows("select webhook_secret_version from applications") == [(2,)]


# One URL for each possible error.
WRONG = {
    UrlFault.TOO_LONG: "https://shop.example.ly/" + "a" * 2100,
    UrlFault.STRAY_CHARACTER: "https://shop.example.ly/\x00<script>",
    UrlFault.NOT_ABSOLUTE: "http://shop.example.ly/",
    UrlFault.USER_INFO: "https://user:pass@shop.example.ly/",
    UrlFault.FRAGMENT: "https://shop.example.ly/#top",
    UrlFault.UNREADABLE_HOST: "https://shop..example.ly/",
    UrlFault.IMPOSSIBLE_PORT: "https://shop.example.ly:70000/",
    UrlFault.LOCAL_NAME: "https://localhost/",
    UrlFault.PRIVATE_ADDRESS: "https://169.254.169.254/latest/meta-data/",
    UrlFault.ODD_SPELLING: "https://0x7f.1/",
}


def test_invalid_webhook_url_is_refused_with_its_own_reason(world: DashboardWorld) -> None:
    world.settings = replace(world.settings, webhooks=WebhookSettings())
    told = set()
    with world.serve():
        person = world.person(Role.OWNER)
        for fault in UrlFault:
            answer = set_url(world, person, WRONG[fault])
            assert answer.status_code == 422
            (error,) = re.findall(r'<p class="error" id="url-error">(.*?)</p>', answer.text)
            assert "<script>" not in answer.text
            assert WEBHOOK_URL in person.text
            told.add(error)
        assert set_url(world, person, "").status_code == 422
    assert len(told) == len(UrlFault)
    assert url_of(world) == WEBHOOK_URL
    assert not any(action.startswith("webhook_url") for action in world.audit())


def test_private_webhook_url_is_accepted_in_development(pages: DashboardWorld) -> None:
    set_url(pages, pages.person(Role.OWNER), "http://127.0.0.1:8008/hook")
    assert url_of(pages) == "http://127.0.0.1:8008/hook"


@pytest.mark.parametrize("role", [Role.OWNER, Role.DEVELOPER])
def test_webhook_secret_is_rolled_and_shown_once(pages: DashboardWorld, role: Role) -> None:
    with capture_logs(level="DEBUG") as log:
        person = pages.person(role)
        person.open(page_of(pages))
        assert "Roll secret" in person.text
        answer = person.post(f"{page_of(pages)}/secret", confirmed="yes")
        assert answer.status_code == 200
        (secret,) = _SECRET.findall(answer.text)
        assert "data-copy " in answer.text
        assert "Retries that were queued earlier still carry the old one" in person.text
        later = person.open(page_of(pages)).text + person.open("/audit").text
    with pages.database.transaction() as connection:
        assert decrypt_webhook_secret(connection, pages.box, pages.application.id, 2).text == secret
        first = decrypt_webhook_secret(connection, pages.box, pages.application.id, 1).text
    assert first == pages.application.webhook_secret
    assert pages.rows("select webhook_secret_version from applications") == [(2,)]
    rows = pages.rows("select details from audit_log where action = 'webhook_secret_rolled'")
    assert rows == [({"version": 2},)]
    assert secret not in later
    assert secret not in log.getvalue()


def test_rolling_twice_with_one_form_rolls_once(pages: DashboardWorld) -> None:
    """A double click, or a reload of the response."""
    person = pages.person(Role.OWNER)
    form = person.open(page_of(pages))
    person.post(f"{page_of(pages)}/secret", confirmed="yes")
    person.response = form
    answer = person.post(f"{page_of(pages)}/secret", confirmed="yes")
    assert "The secret was rolled a moment ago" in person.text
    assert not _SECRET.search(answer.text)
    assert pages.rows("select webhook_secret_version from applications") == [(2,)]
    assert pages.audit().count("webhook_secret_rolled") == 1


def test_only_the_current_version_of_the_secret_can_be_rolled(pages: DashboardWorld) -> None:
    """In any digits."""
    person = pages.person(Role.OWNER)
    for version in ("", "0", "2", "-1", "x", "\x00", "9" * 30, "١"):
        person.open(page_of(pages))
        answer = person.post(f"{page_of(pages)}/secret", version=version, confirmed="yes")
        assert answer.status_code == 200, version
        now = 2 if version == "١" else 1
        assert pages.rows("select webhook_secret_version from applications") == [(now,)], version


def test_the_page_counts_queued_retries_with_a_previous_secret(pages: DashboardWorld) -> None:
    """Only pending ones of this application."""
    other = pages.make_merchant("Misrata Books").application.id
    person = pages.person(Role.VIEWER)
    person.open(page_of(pages))
    assert "Queued with an older secret" not in person.text

    def deliver(application: UUID, version: int, status: str, event: str) -> None:
        pages.run(
            """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status,
                   next_due_at)
               values (uuidv7(), gen_random_uuid(), %s, %s, 'https://x.example', %s, %s,
                       case when %s = 'pending' then mizan_now() end)""",
            application, event, version, status, status,
        )  # fmt: skip

    owner = pages.person(Role.OWNER)
    owner.open(page_of(pages))
    owner.post(f"{page_of(pages)}/secret", confirmed="yes")
    for event in ("payment_intent.succeeded", "payment_intent.canceled"):
        deliver(pages.application.id, 1, "pending", event)
        deliver(pages.application.id, 2, "pending", event)
        deliver(pages.application.id, 1, "succeeded", event)
        deliver(other, 1, "pending", event)
    person.open(page_of(pages))
    assert "Queued with an older secret 2 deliveries" in person.text


def test_viewer_sees_that_an_operator_has_paused_webhooks(pages: DashboardWorld) -> None:
    person = pages.person(Role.VIEWER)
    assert "paused" not in person.open(page_of(pages)).text
    with pages.database.transaction() as connection:
        pause_webhooks(connection, pages.application.id)
    person.open(page_of(pages))
    assert "An operator paused the webhooks of this application on" in person.text


def test_viewer_sees_the_webhook_settings_without_forms(pages: DashboardWorld) -> None:
    page = pages.person(Role.VIEWER).open(page_of(pages)).text
    assert f'Events are sent to</dt><dd><bdi dir="ltr">{WEBHOOK_URL}' in page
    assert 'action="/applications/' not in page
