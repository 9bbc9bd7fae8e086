"""What an application's settings can have been when, after changes that were acknowledged or not."""

from math import inf

import pytest

from chaos.history import ApplicationRegistered, SecretRolled, WebhooksPaused, WebhookUrlChanged
from chaos.judge.applications import LOST_REQUEST_SECONDS, Application
from tests.chaos.run_builder import sign

_FIRST = "whsec_first"
_URL = "https://a.test/1"


def _application(
    *settings: SecretRolled | WebhookUrlChanged | WebhooksPaused, url: str | None = _URL
) -> Application:
    application = Application(
        ApplicationRegistered(at=1.0, application="a", webhook_url=url, secret=_FIRST, receiver_lives=True)
    )
    for setting in settings:
        application.add(setting)
    return application


def _roll(began_at: float, at: float, secret: str | None) -> SecretRolled:
    return SecretRolled(at=at, began_at=began_at, application="a", secret=secret)


def _url(began_at: float, at: float, url: str, *, acknowledged: bool = True) -> WebhookUrlChanged:
    return WebhookUrlChanged(
        at=at, began_at=began_at, application="a", webhook_url=url, acknowledged=acknowledged
    )


def _pause(began_at: float, at: float, *, acknowledged: bool = True) -> WebhooksPaused:
    return WebhooksPaused(at=at, began_at=began_at, application="a", paused=True, acknowledged=acknowledged)


def _resume(began_at: float, at: float, *, acknowledged: bool = True) -> WebhooksPaused:
    return WebhooksPaused(at=at, began_at=began_at, application="a", paused=False, acknowledged=acknowledged)


def test_secret_is_current_until_the_next_roll_was_answered() -> None:
    application = _application(_roll(10, 11, "whsec_2"), _roll(20, 21, "whsec_3"))
    periods = {period.value: (period.since, period.until) for period in application.secrets}
    assert periods == {_FIRST: (-inf, 11), "whsec_2": (10, 21), "whsec_3": (20, inf)}


def test_roll_without_an_answer_ends_no_secret() -> None:
    application = _application(_roll(20, 21, None), _roll(10, 11, None), _roll(30, 31, "whsec_3"))
    periods = {period.value: (period.since, period.until) for period in application.secrets}
    assert periods == {_FIRST: (-inf, 31), "whsec_3": (30, inf)}
    assert application.unknown_secret_since == 10


def test_rolls_at_the_same_time_may_end_in_either_order() -> None:
    application = _application(_roll(10, 15, "whsec_2"), _roll(12, 13, "whsec_3"))
    periods = {period.value: (period.since, period.until) for period in application.secrets}
    assert periods == {_FIRST: (-inf, 13), "whsec_2": (10, inf), "whsec_3": (12, inf)}


def test_secret_is_found_by_its_signature() -> None:
    application = _application(_roll(10, 11, "whsec_2"))
    for secret in (_FIRST, "whsec_2"):
        found = application.find_secret(b"body", sign("body", secret))
        assert found is not None
        assert found.value == secret
    assert application.find_secret(b"body", sign("body", "whsec_other")) is None
    assert application.find_secret(b"other", sign("body", _FIRST)) is None


def test_url_is_surely_set_when_the_first_change_was_acknowledged() -> None:
    assert _application().surely_has_url_since == 1
    assert _application(url=None).surely_has_url_since == inf
    lost = _url(5, 6, "https://a.test/2", acknowledged=False)
    assert _application(lost, _url(20, 21, _URL), _url(8, 9, _URL), url=None).surely_has_url_since == 9


@pytest.mark.parametrize(
    ("pauses", "may_be_paused"),
    [
        ([], False),
        ([_pause(10, 11)], True),
        ([_pause(10, 11, acknowledged=False)], True),
        ([_pause(10, 11), _resume(20, 21)], False),
        ([_pause(10, 11), _resume(20, 21, acknowledged=False)], True),
        ([_pause(10, 11), _resume(20, 21), _pause(30, 31)], True),
        ([_pause(30, 31), _pause(10, 11), _resume(20, 21)], True),
        ([_pause(30, 31), _resume(40, 41), _pause(10, 11), _resume(20, 21)], False),
        # They overlapped, so nobody knows which came last.
        ([_pause(10, 25), _resume(20, 21)], True),
        # A request that was given up may still take effect for some time.
        ([_pause(10, 11, acknowledged=False), _resume(20, 21)], True),
        ([_pause(10, 11, acknowledged=False), _resume(12 + LOST_REQUEST_SECONDS, 100)], False),
        ([_resume(5, 6)], False),
    ],
)
def test_pause_at_the_end(pauses: list[WebhooksPaused], may_be_paused: bool) -> None:
    assert _application(*pauses).may_be_paused_at_end is may_be_paused


def test_lost_pause_takes_effect_within_a_minute() -> None:
    """No fault holds a request back for longer."""
    assert 40 < LOST_REQUEST_SECONDS <= 120


@pytest.mark.parametrize(
    ("begin", "end", "may_be_paused"),
    [
        (0, 9, False),
        (0, 10, True),
        (15, 16, True),
        (20.5, 30, True),
        (22, 30, False),
        (22, 50, True),
        (90, 99, True),
    ],
)
def test_pause_in_between(begin: float, end: float, may_be_paused: bool) -> None:
    application = _application(
        _pause(10, 11), _resume(20, 21), _pause(50, 51), _resume(60, 61, acknowledged=False)
    )
    assert application.may_be_paused_between(begin, end) is may_be_paused
