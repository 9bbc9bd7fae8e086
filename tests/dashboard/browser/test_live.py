"""Live pages update while they are visible, but never what somebody is using."""

import pytest
from playwright.sync_api import Route, expect

from services.scheduler.jobs.bulk_resends import BulkResends
from tests.dashboard.browser.colleague import Colleague
from tests.dashboard.busy_shop import BusyShop, open_busy_shop
from tests.dashboard.world import DashboardWorld

pytestmark = pytest.mark.browser

_LONG_MS = 120_000
_A_PAUSE_MS = 4_000
"""Time on the page's fake clock after which an update is due."""


@pytest.fixture
def shop(pages: DashboardWorld) -> BusyShop:
    return open_busy_shop(pages, pages.merchant.id)


def test_new_delivery_that_does_not_match_the_filter_does_not_appear(
    owner: Colleague, shop: BusyShop
) -> None:
    owner.page.clock.install()
    owner.open(shop.path("deliveries?status=failed"))
    rows = owner.page.locator("tbody tr")
    expect(rows).to_have_count(1)
    shop.deliveries.make("succeeded")
    shop.deliveries.make("failed", 500)
    owner.page.clock.run_for(_A_PAUSE_MS)
    expect(rows).to_have_count(2)
    expect(owner.page.locator("tbody")).not_to_contain_text(owner.says("Succeeded"))


def test_older_pages_of_the_list_do_not_update(owner: Colleague, shop: BusyShop) -> None:
    shop.deliveries.make_many(60)
    owner.page.clock.install()
    owner.open(shop.path("deliveries"))
    owner.link("Older").click()
    owner.link("Newest").wait_for()
    expect(owner.button("Live")).to_have_count(0)
    with owner.noting(parts=True) as asked:
        owner.page.clock.run_for(_LONG_MS)
    assert asked == []


def test_live_updates_of_a_delivery_can_be_paused_and_resumed(owner: Colleague, shop: BusyShop) -> None:
    owner.page.clock.install()
    owner.open(shop.path(f"deliveries/{shop.delivery}"))
    owner.button("Live").click()
    with owner.noting(parts=True) as asked:
        shop.deliveries.add_try(shop.delivery, 4, 503)
        owner.page.clock.run_for(_LONG_MS)
        assert asked == []
        expect(owner.page.locator("#try-4")).to_have_count(0)
        owner.button("Live").click()
        expect(owner.page.locator("#try-4")).to_be_visible()
        assert asked


def test_selected_text_stays_selected(owner: Colleague, shop: BusyShop) -> None:
    owner.page.clock.install()
    owner.open(shop.path(f"deliveries/{shop.delivery}"))
    body = owner.page.locator("pre[aria-labelledby=body-title]")
    body.select_text()
    marked = owner.page.evaluate("getSelection().toString()")
    shop.deliveries.add_try(shop.delivery, 4, 503)
    with owner.page.expect_response(lambda answer: "x-part" in answer.request.headers):
        owner.page.clock.run_for(_A_PAUSE_MS)
    owner.page.clock.run_for(1)
    assert owner.page.evaluate("getSelection().toString()") == marked
    expect(owner.page.locator("#try-4")).to_have_count(0)
    owner.page.evaluate("getSelection().removeAllRanges()")
    owner.page.clock.run_for(_A_PAUSE_MS)
    expect(owner.page.locator("#try-4")).to_be_visible()


def test_live_page_reports_an_unreachable_server_and_catches_up(owner: Colleague, shop: BusyShop) -> None:
    """Meanwhile it polls less and less often."""
    told = owner.page.locator("[data-live-status]")
    tried: list[str] = []

    def hang_up(route: Route) -> None:
        if "x-part" in route.request.headers:
            tried.append(route.request.url)
            route.abort()
        else:
            route.fallback()

    owner.page.clock.install()
    owner.open(shop.path("deliveries"))
    rows = owner.page.locator("tbody tr")
    before = rows.count()
    owner.page.route("**/*", hang_up)
    for _ in range(3):
        owner.page.clock.run_for(60_000)
        expect(told).to_have_text(owner.says("The page could not be updated. Trying again."))
    assert len(tried) < 20
    owner.page.unroute("**/*")
    shop.deliveries.make()
    owner.page.clock.run_for(61_000)
    expect(rows).to_have_count(before + 1)
    expect(told).to_have_text("")
    owner.visitor.problems[:] = [each for each in owner.visitor.problems if "ERR_FAILED" not in each]


def test_progress_bar_of_a_bulk_resend_advances(
    pages: DashboardWorld, owner: Colleague, shop: BusyShop
) -> None:
    shop.deliveries.make_many(50, "failed", 500)
    owner.page.clock.install()
    owner.open(shop.path("deliveries/resend-failed"))
    owner.button("Resend all of them").click()
    bar = owner.page.get_by_role("progressbar")
    resends = BulkResends(pages.database)
    for share in (0.3922, 0.7843, 1):  # 20, 40, 51 of 51
        expect(bar).not_to_have_js_property("value", share)
        _go_on(pages, resends)
        owner.page.clock.run_for(_A_PAUSE_MS)
        expect(bar).to_have_js_property("value", share)
    owner.reads("See what is still failed")
    assert len(shop.deliveries.in_line()) == 51


def _go_on(pages: DashboardWorld, resends: BulkResends) -> None:
    """Run the next batch, which is due after one second."""
    pages.run("update bulk_resends set next_batch_at = mizan_now()")
    resends.run_once()
