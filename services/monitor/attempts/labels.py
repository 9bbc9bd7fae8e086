"""Labels of attempts, payments and methods, and why an attempt cannot be decided."""

from flask_babel import gettext
from flask_babel import lazy_gettext as _

from shared.console.payment_labels import ATTEMPT_STATES, PROVIDER_ANSWERS
from shared.domain.attempts.decision_proposals import OwnProposalError, ProposalEndedError
from shared.domain.attempts.decision_rules import (
    AttemptChangedError,
    ContradictsProviderError,
    OutcomeKnownError,
    RecordedAnswer,
    StillInFlightError,
)
from shared.domain.attempts.duplicates import NotDuplicateError
from shared.domain.attempts.operator_decision import AlreadyProposedError, NotAskedError, ProposalEnd
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import EventType
from shared.platform.errors import RefusedError

TONES = {
    AttemptState.PAID: "good",
    AttemptState.DECLINED: "quiet",
    AttemptState.ABANDONED: "quiet",
    AttemptState.DUPLICATE: "bad",
    AttemptState.UNKNOWN: "bad",
}
ANSWER_TONES = {RecordedAnswer.PAID: "good", RecordedAnswer.UNKNOWN: "bad"}
OUTCOMES = {"paid": _("It was paid"), "declined": _("It was not paid")}
ENDS = {
    ProposalEnd.APPROVED: _("Approved"),
    ProposalEnd.REJECTED: _("Rejected"),
    ProposalEnd.OUTDATED: _("Outdated"),
}
EVENTS = {
    EventType.CREATED: _("Created"),
    EventType.PROCESSING: _("The provider was asked to charge the customer"),
    EventType.REQUIRES_PAYMENT_METHOD: _("Waiting for payment again"),
    EventType.SUCCEEDED: _("Paid"),
    EventType.CANCELED: _("Expired"),
}


_REFUSALS: dict[type[RefusedError], object] = {
    StillInFlightError: _(
        "Nothing was changed: the request was sent a moment ago, and the provider may still respond."
    ),
    NotAskedError: _(
        "Nothing was changed: ask the provider first. There is no answer of the last ten minutes"
        " about the attempt as it is now."
    ),
    AlreadyProposedError: _("Nothing was changed: a decision about this attempt waits for approval."),
    OwnProposalError: _("Nothing was changed: another operator has to approve what you proposed."),
}


def explain_refusal(error: RefusedError) -> str:
    """Return the text for the operator whose decision was refused."""
    return str(_REFUSALS.get(type(error)) or _explain_refusal(error))


def _explain_refusal(error: RefusedError) -> object:
    match error:
        case OutcomeKnownError():
            return gettext(
                "Nothing was changed: the outcome is already known. The state is: %(state)s.",
                state=ATTEMPT_STATES[error.state],
            )
        case AttemptChangedError():
            return gettext(
                "Nothing was changed: the attempt has changed since you opened the page."
                " The state is now: %(state)s. Check it again.",
                state=ATTEMPT_STATES[error.state],
            )
        case ContradictsProviderError():
            return gettext(
                "Nothing was changed: the provider contradicts this. Its answer was: %(answer)s.",
                answer=PROVIDER_ANSWERS[error.answer],
            )
        case ProposalEndedError():
            return gettext(
                "Nothing was changed: this proposal is no longer open. It was: %(end)s.",
                end=ENDS[error.ended_as],
            )
        case NotDuplicateError():
            return gettext(
                "Nothing was changed: this is not a duplicate payment. The state is: %(state)s.",
                state=ATTEMPT_STATES[error.state],
            )
    return gettext("It could not be done: %(why)s", why=str(error))
