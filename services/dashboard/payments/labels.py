"""Labels of payment attempts, decline reasons and filter errors."""

from flask_babel import lazy_gettext as _

from services.dashboard.payments.forms import FilterError
from shared.console.search_text import MAX_SEARCH
from shared.domain.attempts.states import AttemptState

ATTEMPT_TONES = {
    AttemptState.PAID: "good",
    AttemptState.DECLINED: "quiet",
    AttemptState.ABANDONED: "quiet",
    AttemptState.DUPLICATE: "bad",
}
REASONS = {
    "declined": _("The provider declined it."),
    "insufficient_funds": _("There was not enough money in the account."),
    "not_subscribed": _("The phone number is not registered with the wallet."),
    "wrong_phone": _("The wallet does not know the phone number."),
    "wrong_phone_or_birth_year": _("The wallet does not know the phone number with this birth year."),
    "wrong_code": _("The code was wrong."),
    "code_expired": _("The code was no longer valid."),
    "too_many_codes": _("There were too many wrong codes."),
    "wait_before_next_code": _("A code had been sent a moment before."),
    "amount_not_allowed": _("The provider does not take this amount."),
    "account_trouble": _("The provider reports a problem with your account there."),
    "left_by_customer": _("The customer left the provider's page."),
    "provider_away": _("The provider did not answer."),
    "charged again": _("The provider charged one attempt twice."),
}
BY_OPERATOR = _("An operator decided it. The audit log says why.")
"""Any other reason is an operator's own words."""
FILTER_ERRORS = {
    FilterError.UNKNOWN_STATUS: _("There is no such status."),
    FilterError.INVALID_DAY: _("Enter a day as year-month-day, such as 2026-01-31."),
    FilterError.DAYS_REVERSED: _("The last day is before the first."),
    FilterError.TOO_LONG: _("Search for at most %(most)d characters.", most=MAX_SEARCH),
    FilterError.INVALID_TEXT: _("A reference cannot contain this text."),
}


def reason_label(reason: str | None) -> object:
    """Return the label of a decline reason, or an empty string if there is none."""
    return "" if reason is None else REASONS.get(reason, BY_OPERATOR)
