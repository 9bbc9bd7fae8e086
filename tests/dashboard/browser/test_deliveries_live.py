"""The list, a delivery and the progress of a bulk resend update themselves, and can be paused."""

from uuid import UUID

import pytest
from playwright.sync_api import expect

from tests.dashboard.browser.colleague import Colleague
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.world import DashboardWorld

pytestmark = pytest.mark.browser

_A_PAUSE_MS = 4_000
"""Time on the page's fake clock after which an update is due."""
_HAS_RUN = "window.hasRun"
_HOSTILE = b"<script>window.hasRun = true</script><img src=x onerror='window.hasRun = true'>"


def address_of(pages: DashboardWorld, delivery: UUID | str = "") -> str:
    tail = f"/{delivery}" if delivery else ""
    return f"/applications/{pages.application.id}/deliveries{tail}"


def test_a_new_delivery_appears_and_the_focus_stays(
    pages: DashboardWorld, deliveries: Deliveries, owner: Colleague
) -> None:
    first = deliveries.make()
    owner.page.clock.install()
    owner.open(address_of(pages))
    rows = owner.page.locator("tbody tr")
    expect(rows).to_have_count(1)
    link = owner.page.locator(f'a[href$="{first}"]')
    link.focus()
    deliveries.make("failed", 500)
    owner.page.clock.run_for(_A_PAUSE_MS)
    expect(rows).to_have_count(2)
    expect(link).to_be_focused()
    deliveries.run("update webhook_deliveries set status = 'succeeded' where status = 'failed'")
    owner.page.clock.run_for(_A_PAUSE_MS)
    expect(owner.page.locator("tbody")).not_to_contain_text(owner.says("Failed"))


def test_a_paused_live_page_does_not_change(
    pages: DashboardWorld, deliveries: Deliveries, owner: Colleague
) -> None:
    """WCAG 2.2.2, also with the keyboard."""
    deliveries.make()
    owner.page.clock.install()
    owner.open(address_of(pages))
    asked: list[str] = []
    owner.page.on(
        "request", lambda request: asked.append(request.url) if "x-part" in request.headers else None
    )
    live = owner.button("Live")
    expect(live).to_have_attribute("aria-pressed", "true")
    live.focus()
    owner.page.keyboard.press("Space")
    expect(live).to_have_attribute("aria-pressed", "false")
    asked.clear()
    deliveries.make()
    owner.page.clock.run_for(600_000)
    assert asked == []
    expect(owner.page.locator("tbody tr")).to_have_count(1)
    live.click()
    expect(owner.page.locator("tbody tr")).to_have_count(2)
    assert asked


def test_live_page_says_when_the_session_has_ended(
    pages: DashboardWorld, deliveries: Deliveries, owner: Colleague
) -> None:
    deliveries.make()
    owner.page.clock.install()
    owner.open(address_of(pages))
    pages.run("update sessions set expires_at = mizan_now()")
    owner.page.clock.run_for(_A_PAUSE_MS)
    expect(owner.page.locator("[data-live-status]")).to_have_text(
        owner.says("Your session has ended. Reload the page to sign in again.")
    )
    owner.page.clock.run_for(10 * _A_PAUSE_MS)
    expect(owner.page.locator("tbody tr")).to_have_count(1)
    told = [problem for problem in owner.visitor.problems if problem.startswith("status 401")]
    assert owner.visitor.problems == told[:1], "it asks once, and never again"
    owner.visitor.problems.clear()


def test_new_try_appears_and_opened_tries_stay_open(
    pages: DashboardWorld, deliveries: Deliveries, owner: Colleague
) -> None:
    """Nothing in a response body is executed, neither at first nor after an update."""
    delivery = deliveries.make("failed", 500, tries=2)
    deliveries.add_try(delivery, 1, 500, answer=_HOSTILE)
    deliveries.add_try(delivery, 2, 500, answer=_HOSTILE)
    owner.page.clock.install()
    owner.open(address_of(pages, delivery))
    first = owner.page.locator("#try-1")
    first.locator("summary").click()
    deliveries.add_try(delivery, 3, 200, answer=_HOSTILE, is_resend=True)
    owner.page.clock.run_for(_A_PAUSE_MS)
    expect(owner.page.locator("#try-3")).to_be_visible()
    expect(first).to_have_attribute("open", "")
    expect(first.locator("summary")).to_be_focused()
    expect(owner.page.locator("#try-3 pre")).to_have_text(_HOSTILE.decode())
    assert not owner.page.evaluate(_HAS_RUN)
