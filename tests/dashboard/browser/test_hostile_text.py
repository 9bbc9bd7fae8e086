"""Text written by others is shown as text: nothing in it is executed, and the page is not affected."""

import json
from urllib.parse import quote
from uuid import UUID

import pytest
from playwright.sync_api import expect

from shared.domain.accounts.roles import Role
from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.domain.intents.states import IntentStatus
from tests.dashboard.browser.colleague import Colleague, Colleagues
from tests.dashboard.browser.texts import DIRECTIONS, LANGUAGES
from tests.dashboard.busy_shop import BusyShop, open_busy_shop
from tests.dashboard.payment_rows import make_attempt, make_intent
from tests.dashboard.world import PASSWORD, DashboardWorld, Merchant

pytestmark = pytest.mark.browser

MARKUP = "</title></code></pre></bdi>'\"><script>hasRun=1</script><img src=x onerror=hasRun=1><b id=hostile>{{7*7}}"
TURNED = "\u202eReversed\u2066 \u202boverride"
"""Reverses the direction of the text that follows, unless it is isolated."""
HOSTILE = f"{MARKUP} {TURNED}"

_TURNING = r"[\u202a\u202b\u202d\u202e\u2066-\u2068]"
# Text with bidirectional controls must be isolated in its own element.
_NOT_KEPT_APART = f"""(hostile) => {{
  const found = [];
  const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {{
    const text = walker.currentNode;
    if (!/{_TURNING}/.test(text.data) || text.parentElement.closest("template, script, option")) continue;
    const isApart = (box) => /isolate|plaintext/.test(getComputedStyle(box).unicodeBidi);
    let box = text.parentElement;
    while (box && !isApart(box)) box = box.parentElement;
    const isAlone = box && (["bdi", "code", "pre"].includes(box.localName) || box.textContent.trim() === hostile);
    if (!isAlone) found.push(`${{text.parentElement.outerHTML.slice(0, 160)}}`);
  }}
  return found;
}}"""
_INTRUDERS = "#hostile, main script, main img, body > img, iframe, object, embed"


def _poison(pages: DashboardWorld) -> tuple[Merchant, BusyShop, list[str]]:
    """Put hostile text into everything that others can write. Return the paths of the pages that show it."""
    merchant = pages.make_merchant("to be renamed")
    pages.run("update merchants set name = %s where id = %s", HOSTILE, merchant.id)
    shop = open_busy_shop(pages, merchant.id, "to be renamed")
    pages.run("update applications set name = %s where merchant_id = %s", HOSTILE, merchant.id)
    payment = make_intent(
        pages,
        HOSTILE,
        IntentStatus.SUCCEEDED,
        application_id=shop.application_id,
        description=HOSTILE,
        customer=HOSTILE,
        metadata=json.dumps({HOSTILE: HOSTILE}),
    )
    make_attempt(pages, payment, "declined", reason=HOSTILE, provider_reference=HOSTILE)
    delivery = shop.deliveries.make("failed", 500, intent=payment)
    shop.deliveries.add_try(delivery, 1, 500, answer=HOSTILE.encode())
    url = f"https://shop.example.ly/{MARKUP.replace(' ', '+')}"
    pages.run("update webhook_deliveries set url = %s where id = %s", url, delivery)
    pages.run("update applications set webhook_url = %s where id = %s", url, shop.application_id)
    _poison_audit_log(pages, merchant.id, shop.application_id)
    sections = ("", "payments", f"payments/{payment}", "deliveries", f"deliveries/{delivery}")
    paths = [shop.path(section) for section in (*sections, "webhook", "credentials", "settings")]
    return merchant, shop, ["/", "/team", "/audit", "/account", *paths]


def _poison_audit_log(pages: DashboardWorld, merchant_id: UUID, application_id: UUID) -> None:
    with pages.database.transaction() as connection:
        add_audit_entry(
            connection,
            Actor(HOSTILE, address="192.0.2.7"),
            Action.APPLICATION_RENAMED,
            merchant_id=merchant_id,
            application_id=application_id,
            details={"name": HOSTILE, "methods": [HOSTILE, HOSTILE]},
        )


@pytest.mark.parametrize("lang", LANGUAGES)
def test_hostile_text_is_escaped_on_every_page(
    pages: DashboardWorld, colleagues: Colleagues, lang: str
) -> None:
    merchant, _shop, paths = _poison(pages)
    who = colleagues.come(lang=lang)
    who.sign_in(pages.make_member(Role.OWNER, merchant), PASSWORD)
    pages.run("update sessions set browser = %s", HOSTILE)
    found = []
    for path in paths:
        who.open(path)
        expect(who.page.locator("body")).to_contain_text(MARKUP)
        found += [f"{path}: {problem}" for problem in _problems(who)]
    assert not found, "\n".join(found)


def _problems(who: Colleague) -> list[str]:
    found = [f"not kept apart: {text}" for text in who.page.evaluate(_NOT_KEPT_APART, HOSTILE)]
    if who.page.evaluate("typeof hasRun") != "undefined":
        found.append("a script ran")
    if who.page.locator(_INTRUDERS).count():
        found.append("markup became elements")
    if "hasRun" in who.page.title():
        found.append("the title has it")
    if who.page.locator("html").get_attribute("dir") != DIRECTIONS[who.lang]:
        found.append("the direction of the page has changed")
    return found


def test_hostile_input_is_escaped_in_forms(pages: DashboardWorld, colleagues: Colleagues) -> None:
    who = colleagues.come(expected_statuses=frozenset({404, 422}))
    who.page.evaluate("document.querySelector('[name=email]').type = 'text'")
    who.field("Email").fill(HOSTILE)
    who.field("Password").fill("x")
    who.button("Sign in").click()
    who.reads("Email or password is not right.")
    assert _problems(who) == []
    who.sign_in(pages.make_member(Role.OWNER), PASSWORD)
    here = f"/applications/{pages.application.id}"
    for path in (
        "payments?search",
        "payments?from",
        "deliveries?id",
        "deliveries?from",
        "deliveries/resend-failed?from",
    ):
        who.page.goto(f"{who.url}{here}/{path}={_in_address(HOSTILE)}")
        assert _problems(who) == [], path
    who.open(f"/{_in_address(HOSTILE)}")
    who.sees("There is no such page")
    assert _problems(who) == []
    who.open(f"{here}/settings")
    who.field("Name").fill(f"{HOSTILE} {'x' * 60}")
    who.button("Save name").click()
    who.reads("The name was saved.")
    assert _problems(who) == []


def _in_address(text: str) -> str:
    return quote(text, safe="")
