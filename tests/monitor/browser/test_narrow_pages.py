"""Phones and laptops: tables, money and notices of the monitor fit."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from tests.browser import DESKTOP, SMALL_PHONE
from tests.catalogue import LANGUAGES
from tests.monitor.browser.failing_system import FailingSystem
from tests.monitor.browser.operator_browser import OperatorBrowsers
from tests.monitor.world import PASSWORD
from tests.page_layout import PHONE, money_problems, notice_problems, table_problems

pytestmark = pytest.mark.browser

LARGEST = 1_000_000_000
"""The largest amount of a payment, in thousandths."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_fits_a_phone_and_a_laptop(
    system: FailingSystem, operators: OperatorBrowsers, lang: str
) -> None:
    """No table is cut or scrolls sideways, and amounts are on one line with their currency."""
    who = operators.come(lang, expected_statuses=frozenset({404}))
    who.sign_in(system.world.make_operator(), PASSWORD)
    system.world.run("update payment_intents set amount = %s", LARGEST)
    _let_consumers_lag(system)
    found = []
    for name, path, heading in system.pages(who.says):
        who.open(path)
        expect(who.page.locator("h1")).to_have_text(heading)
        system.world.run("update payment_intents set amount = %s", LARGEST)
        for screen in (SMALL_PHONE, PHONE, DESKTOP):
            who.page.set_viewport_size(screen)
            problems = table_problems(who.page) + notice_problems(who.page)
            if path.startswith("/attempts"):
                problems += money_problems(who.page)
            found += [f"{name}, {screen['width']} px: {problem}" for problem in problems]
    assert not found, "\n".join(found)


def _let_consumers_lag(system: FailingSystem) -> None:
    """Show the longest values in the tables of consumers: high lags, and the time of a commit."""
    poller = system.world.inspector.kafka
    state = poller.result.value
    assert state is not None
    groups = tuple(
        replace(
            group,
            partitions=tuple(
                replace(each, lag=9_999_999, lag_s=200_000.0, committed_at=datetime.now(UTC))
                for each in group.partitions
            ),
        )
        for group in state.snapshot.groups
    )
    poller._result = replace(
        poller.result, value=replace(state, snapshot=replace(state.snapshot, groups=groups))
    )
