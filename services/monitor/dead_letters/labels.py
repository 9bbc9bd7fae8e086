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
    DeadLetterNotFoundError: _("This dead letter no longer exists. Dead letters are kept for 30 days."),
    DeadLetterRecordLostError: _(
        "The record is lost: it was too large for a dead letter, and its topic no longer has it."
    ),
    OriginNotConsumedError: _("No consumer reads the topic it came from, so it cannot be replayed."),
    RecordRejectedError: _("Kafka rejects the record when it is written back to its topic."),
    NothingToReplayError: _("There are no dead letters left to replay."),
    ReplayInProgressError: _("A replay is already running. Wait until it ends, or stop it."),
}


def explain_refusal(error: RefusedError) -> str:
    """Return the text for the operator whose request was refused."""
    found = (text for kind, text in _REFUSALS.items() if isinstance(error, kind))
    return str(next(found, None) or gettext("It could not be done: %(why)s", why=str(error)))
