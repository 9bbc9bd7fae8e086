"""Every page of the monitor: accessibility, all screen sizes, keyboard only, and without JavaScript."""

import pytest
from playwright.sync_api import expect

from shared.domain.attempts.states import ProviderAnswer
from tests.accessibility import Appearance, page_problems, preload_axe
from tests.browser import DESKTOP, SMALL_PHONE
from tests.browser_user import press, tab_to, type_into
from tests.catalogue import DIRECTIONS, LANGUAGES
from tests.monitor.browser.failing_system import FailingSystem
from tests.monitor.browser.operator_browser import OperatorBrowser, OperatorBrowsers
from tests.monitor.world import PASSWORD
from tests.shared.domain.attempts.deciding import LIMIT, Deciding

pytestmark = pytest.mark.browser

# Colours and sizes are the same in both languages, so each language checks one scheme and one screen.
LOOKS = {"ar": Appearance("dark", SMALL_PHONE), "en": Appearance("light", DESKTOP)}
REASON = "Seen in the provider's list"


@pytest.fixture
def operator(system: FailingSystem, operators: OperatorBrowsers) -> OperatorBrowser:
    return _come_in(system, operators)


def _come_in(
    system: FailingSystem, operators: OperatorBrowsers, *, javascript: bool = True
) -> OperatorBrowser:
    who = operators.come(javascript=javascript, expected_statuses=frozenset({404, 422}))
    who.sign_in(system.world.make_operator(), PASSWORD)
    return who


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_is_accessible_and_fits_small_and_large_screens(
    system: FailingSystem, operators: OperatorBrowsers, lang: str
) -> None:
    """axe-core finds no violations in light or dark mode, and no content is cut off or off the screen."""
    who = operators.come(lang, expected_statuses=frozenset({404}))
    preload_axe(who.visitor.context)
    found = _violations(who, "sign-in")
    who.sign_in(system.world.make_operator(), PASSWORD)
    for name, path, heading in system.pages(who.says):
        who.open(path)
        expect(who.page.locator("h1")).to_have_text(heading)
        html = who.page.locator("html")
        expect(html).to_have_attribute("lang", lang)
        expect(html).to_have_attribute("dir", DIRECTIONS[lang])
        found += _violations(who, name)
    assert not found, "\n".join(found)


def _violations(who: OperatorBrowser, name: str) -> list[str]:
    """Return the problems of the page, with all its details opened. Leaves it at desktop size."""
    who.page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    return page_problems(who.page, name, LOOKS[who.lang], (SMALL_PHONE, DESKTOP))


def test_monitor_can_be_used_with_the_keyboard_alone(
    system: FailingSystem, operator: OperatorBrowser
) -> None:
    """Replay a dead letter and decide an attempt, starting from the overview."""
    press(operator, operator.problem("could not be processed"))
    operator.sees("Dead letters")
    press(operator, operator.main.get_by_role("rowheader").get_by_role("link").last)
    press(operator, operator.button("Replay"))
    press(operator, operator.question.get_by_role("button", name=operator.says("Replay")))
    operator.reads("The record was written back to its topic and will be processed again.")

    press(operator, operator.link("Payment attempts"))
    press(operator, operator.main.get_by_role("rowheader").get_by_role("link").first)
    tab_to(operator, operator.page.get_by_role("radio", name=operator.says("It was paid")))
    operator.page.keyboard.press("Space")
    type_into(operator, "Provider's reference, if it was paid", "T-9")
    type_into(operator, "How do you know?", REASON)
    press(operator, operator.button("Decide"))
    expect(operator.question.get_by_role("button", name=operator.says("Cancel"))).to_be_focused()
    operator.page.keyboard.press("Escape")
    expect(operator.button("Decide")).to_be_focused()
    assert system.payments.state(system.undecided) == "unknown"
    operator.page.keyboard.press("Enter")
    press(operator, operator.question.get_by_role("button", name=operator.says("Decide")))
    operator.reads("Decided: it was paid. The merchant is notified by webhook.")
    assert system.payments.state(system.undecided) == "paid"


def test_open_page_shows_the_form_when_the_provider_has_answered(
    system: FailingSystem, operator: OperatorBrowser
) -> None:
    """The operator waits for the answer and decides, without reloading the page."""
    deciding = Deciding(system.world.database, system.application)
    attempt = deciding.attempt()
    operator.open(f"/attempts/{attempt}")
    expect(operator.button("Decide")).to_have_count(0)
    operator.button("Ask the provider").click()
    expect(operator.main.get_by_text("No answer is recorded yet.")).to_be_visible()
    deciding.answer(attempt, ProviderAnswer.UNKNOWN)
    expect(operator.button("Decide")).to_be_visible()
    operator.page.get_by_role("radio", name=operator.says("It was paid")).check()
    operator.field("Provider's reference, if it was paid").fill("T-9")
    operator.field("How do you know?").fill(REASON)
    operator.confirm("Decide")
    operator.reads("Decided: it was paid. The merchant is notified by webhook.")


def test_every_action_works_without_javascript(system: FailingSystem, operators: OperatorBrowsers) -> None:
    """Without JavaScript there is no confirmation dialog."""
    who = _come_in(system, operators, javascript=False)
    who.open("/dead-letters/0")
    who.button("Replay").click()
    who.reads("The record was written back to its topic and will be processed again.")
    who.open("/dead-letters/replay-all")
    who.button("Replay all of them").click()
    who.sees("Replaying dead letters")
    who.button("Stop").click()
    who.reads("Stopped. Records that were already replayed stay replayed.")
    who.open(f"/exhausted/{system.exhausted}")
    who.button("Resend").click()
    who.open("/exhausted/resend-all")
    who.button("Resend all of them").click()
    who.sees("Resends of many deliveries")

    who.open(f"/attempts/{system.undecided}")
    who.page.get_by_role("radio", name=who.says("It was not paid")).check()
    who.field("How do you know?").fill(REASON)
    who.button("Decide").click()
    who.reads("Decided: it was not paid.")
    deciding = Deciding(system.world.database, system.application)
    for action, text in (
        ("Approve", "Decided: it was paid. The merchant is notified by webhook."),
        ("Reject", "Rejected. The attempt was not changed."),
    ):
        proposed = deciding.attempt(LIMIT + 1, "plutu")
        deciding.propose(proposed)
        who.open(f"/attempts/{proposed}")
        who.button(action).click()
        who.reads(text)
    who.open(f"/attempts/{system.duplicate}")
    who.field("What was done?").fill("     .")
    who.button("Mark as handled").click()
    expect(who.field("What was done?")).to_have_attribute("aria-invalid", "true")
    who.field("What was done?").fill(REASON)
    who.button("Mark as handled").click()
    who.reads("Marked as handled. The merchant sees it too.")
    who.open(f"/applications/{system.application}")
    for action in ("Pause webhooks", "Resume webhooks"):
        who.field("Why?").fill(REASON)
        who.button(action).click()
        who.reads("Not paused" if action == "Resume webhooks" else "Paused")
    done = set(system.world.audit())
    assert {"letter_replayed", "letters_replayed", "attempt_decided", "duplicate_handled"} <= done
    assert {"decision_proposed", "decision_approved", "decision_rejected"} <= done
