"""When to ask Mizan next. Pure."""

from examples.shop.payments import Status

_FIRST_S, _LONGEST_S = 1.0, 300.0
_AFTER_EXPIRY_S = 5.0
"""Mizan cancels at expires_at by its own clock."""
_UNPAID_S, _LONGEST_UNPAID_S = 30.0, 3600.0
_AFTER_CANCELING_S = (3600.0, 86_400.0, 7 * 86_400.0)
"""A payment can be verified after the intent was canceled (§3), and the webhook that tells of it can fail."""


def after_no_answer(asked: int) -> float:
    """Longer each time, so that a Mizan that comes back is not met by everybody at once."""
    return min(_FIRST_S * 2.0 ** min(asked, 20), _LONGEST_S)


def next_look(status: Status, expires_at: float | None, asked: int, now: float) -> float | None:
    """§6.5, 5: webhooks can fail for good, so what is still unpaid after `expires_at` is looked at again."""
    if status.is_over:
        return None
    if expires_at is not None and now < expires_at:
        return expires_at + _AFTER_EXPIRY_S
    return now + min(_UNPAID_S * 2.0 ** min(asked, 10), _LONGEST_UNPAID_S)


def next_late_look(canceled_at: float, now: float) -> float | None:
    """Counted from the cancel alone, so that looks for other reasons, however many, take the place of none of these."""
    return next((canceled_at + pause for pause in _AFTER_CANCELING_S if canceled_at + pause > now), None)
