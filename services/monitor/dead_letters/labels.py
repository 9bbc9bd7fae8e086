"""Why a dead letter cannot be replayed."""

from flask_babel import gettext
from flask_babel import lazy_gettext as _

from shared.domain.dead_letters.queries import DeadLetterNotFoundError
from shared.domain.dead_letters.replays import NothingToReplayError, ReplayInProgressError
from shared.domain.dead_letters.republish import (
    DeadLetterRecordLostError,
    OriginNotConsumedError,
    RecordRejectedError,
)
from shared.platform.errors import RefusedError

_REFUSALS: dict[type[RefusedError], object] = {
    DeadLetterNotFoundError: _("There is no such dead letter any more. They are kept for 30 days."),
    DeadLetterRecordLostError: _(
        "The record is lost: it was too large for a dead letter, and its origin has it no longer."
    ),
    OriginNotConsumedError: _("Nobody consumes the topic that it came from, so it cannot be put back there."),
    RecordRejectedError: _("Kafka does not take the record back into the topic that it came from."),
    NothingToReplayError: _("There is no dead letter that could be replayed and has not been."),
    ReplayInProgressError: _(
        "Dead letters are being replayed already. Wait until that has ended, or stop it."
    ),
}


def explain_refusal(error: RefusedError) -> str:
    """Return the text for the operator whose request was refused."""
    found = (text for kind, text in _REFUSALS.items() if isinstance(error, kind))
    return str(next(found, None) or gettext("It could not be done: %(why)s", why=str(error)))
