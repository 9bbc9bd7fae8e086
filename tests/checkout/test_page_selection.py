"""The page for every combination of intent status and attempt state."""

import pytest

from services.checkout.pages.view_models import PageKind, select_page
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import IntentStatus

ATTEMPTS = [None, *AttemptState]


@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.parametrize("is_expired", [False, True])
@pytest.mark.parametrize("wants_change", [False, True])
@pytest.mark.parametrize(
    ("status", "showing"),
    [
        (IntentStatus.SUCCEEDED, PageKind.PAID),
        (IntentStatus.PROCESSING, PageKind.PROCESSING),
        (IntentStatus.CANCELED, PageKind.EXPIRED),
    ],
)
def test_final_and_processing_intents_have_their_own_page(
    status: IntentStatus,
    showing: PageKind,
    is_expired: bool,
    wants_change: bool,
    attempt: AttemptState | None,
) -> None:
    shown = select_page(
        status, is_expired=is_expired, attempt=attempt, can_continue=True, wants_change=wants_change
    )
    assert shown is showing


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_expired_intent_shows_the_expired_page(attempt: AttemptState | None) -> None:
    """Even if the scheduler has not canceled it yet."""
    shown = select_page(
        IntentStatus.REQUIRES_PAYMENT_METHOD,
        is_expired=True,
        attempt=attempt,
        can_continue=True,
        wants_change=True,
    )
    assert shown is PageKind.EXPIRED


@pytest.mark.parametrize(
    ("attempt", "can_continue", "wants_change", "showing"),
    [
        (None, False, False, PageKind.READY),
        (AttemptState.DECLINED, False, False, PageKind.READY),
        (AttemptState.ABANDONED, True, False, PageKind.READY),
        (AttemptState.AWAITING_CODE, True, False, PageKind.CODE),
        (AttemptState.AWAITING_CODE, True, True, PageKind.READY),
        (AttemptState.AWAITING_CODE, False, False, PageKind.READY),  # after a crash: no code was sent
        (AttemptState.AWAITING_REDIRECT, True, False, PageKind.REDIRECT_OPEN),
        (AttemptState.AWAITING_REDIRECT, True, True, PageKind.READY),
        (
            AttemptState.AWAITING_REDIRECT,
            False,
            False,
            PageKind.READY,
        ),  # after a crash: the URL of the bank's page is not stored
    ],
)
def test_last_attempt_selects_the_page_of_an_open_intent(
    attempt: AttemptState | None, can_continue: bool, wants_change: bool, showing: PageKind
) -> None:
    shown = select_page(
        IntentStatus.REQUIRES_PAYMENT_METHOD,
        is_expired=False,
        attempt=attempt,
        can_continue=can_continue,
        wants_change=wants_change,
    )
    assert shown is showing
