"""Labels of attempts, payments and methods, and why an attempt cannot be decided."""

from flask_babel import gettext
from flask_babel import lazy_gettext as _

from shared.domain.attempts.duplicates import NotDuplicateError
from shared.domain.attempts.operator_decision import (
    AttemptChangedError,
    OutcomeKnownError,
    StillInFlightError,
)
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import EventType
from shared.platform.errors import RefusedError

STATES = {
    AttemptState.AWAITING_CODE: _("Waiting for the customer's code"),
    AttemptState.AWAITING_REDIRECT: _("On the provider's page"),
    AttemptState.SENT: _("Sent to the provider"),
    AttemptState.UNKNOWN: _("Outcome unknown"),
    AttemptState.PAID: _("Paid"),
    AttemptState.DECLINED: _("Declined"),
    AttemptState.ABANDONED: _("Abandoned"),
    AttemptState.DUPLICATE: _("Duplicate payment"),
}
TONES = {
    AttemptState.PAID: "good",
    AttemptState.DECLINED: "quiet",
    AttemptState.ABANDONED: "quiet",
    AttemptState.DUPLICATE: "bad",
    AttemptState.UNKNOWN: "bad",
}
EVENTS = {
    EventType.CREATED: _("Created"),
    EventType.PROCESSING: _("The provider was asked to charge the customer"),
    EventType.REQUIRES_PAYMENT_METHOD: _("Waiting for payment again"),
    EventType.SUCCEEDED: _("Paid"),
    EventType.CANCELED: _("Expired"),
}


def explain_refusal(error: RefusedError) -> str:
    """Return the text for the operator whose decision was refused."""
    return str(_explain_refusal(error))


def _explain_refusal(error: RefusedError) -> object:
    match error:
        case OutcomeKnownError():
            return gettext(
                "Nothing was changed: the outcome is already known. The state is: %(state)s.",
                state=STATES[error.state],
            )
        case AttemptChangedError():
            return gettext(
                "Nothing was changed: the attempt has changed since you opened the page."
                " The state is now: %(state)s. Check it again.",
                state=STATES[error.state],
            )
        case StillInFlightError():
            return gettext(
                "Nothing was changed: the request was sent a moment ago, and the provider may still respond."
            )
        case NotDuplicateError():
            return gettext(
                "Nothing was changed: this is not a duplicate payment. The state is: %(state)s.",
                state=STATES[error.state],
            )
    return gettext("It could not be done: %(why)s", why=str(error))
