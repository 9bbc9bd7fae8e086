"""Words for what ended badly: states, failures, and why something cannot be replayed."""

from flask_babel import gettext
from flask_babel import lazy_gettext as _

from shared.domain.dead_letters.queries import LetterNotFoundError
from shared.domain.dead_letters.replays import NothingToReplayError, ReplayingAlreadyError
from shared.domain.dead_letters.republish import LetterLostError, OriginRefusedError, RecordRefusedError
from shared.domain.deliveries.exhausted import GONE
from shared.domain.deliveries.pause import SendingRefusedError, SendRefusal
from shared.domain.deliveries.try_results import NO_URL, TryFailure
from shared.platform.errors import RefusedError

STATUSES = {
    "pending": _("Pending"),
    "succeeded": _("Succeeded"),
    "failed": _("Failed"),
    GONE: _("No longer kept"),
}
TONES = {"pending": "waiting", "succeeded": "good", "failed": "bad", GONE: "quiet"}
FAILURES = {
    TryFailure.DNS: _("Name not found"),
    TryFailure.REFUSED: _("Connection refused"),
    TryFailure.UNREACHABLE: _("Not reachable"),
    TryFailure.TLS: _("TLS error"),
    TryFailure.TIMEOUT: _("No answer in time"),
    TryFailure.BROKEN_ANSWER: _("Broken answer"),
    TryFailure.BLOCKED_ADDRESS: _("Address not allowed"),
    NO_URL: _("No webhook URL"),
}
OUTCOMES = {
    "done": _("Done"),
    "stopped": _("Stopped"),
    "no_url": _("Ended: the webhook URL was removed"),
    "paused": _("Ended: the webhooks were paused"),
}
OUTCOME_TONES = {"done": "good", "stopped": "quiet", "no_url": "bad", "paused": "bad"}
PERIODS = {
    "1d": _("The last 24 hours"),
    "2d": _("The last 2 days"),
    "3d": _("The last 3 days"),
    "7d": _("The last 7 days"),
    "30d": _("The last 30 days"),
}
REFUSALS = {
    SendRefusal.NO_URL: _("The application has no webhook URL, so nothing can be sent to it."),
    SendRefusal.PAUSED: _("The webhooks of this application are paused. Resume them first."),
}
_CANNOT: dict[type[RefusedError], object] = {
    LetterNotFoundError: _("There is no such dead letter any more. They are kept for 30 days."),
    LetterLostError: _(
        "The record is lost: it was too large for a dead letter, and its origin has it no longer."
    ),
    OriginRefusedError: _("Nobody consumes the topic that it came from, so it cannot be put back there."),
    RecordRefusedError: _("Kafka does not take the record back into the topic that it came from."),
    NothingToReplayError: _("There is no dead letter that could be replayed and has not been."),
    ReplayingAlreadyError: _(
        "Dead letters are being replayed already. Wait until that has ended, or stop it."
    ),
}


def why_not(error: RefusedError) -> str:
    """For whoever asked for it."""
    if isinstance(error, SendingRefusedError):
        return str(REFUSALS[error.refusal])
    found = (words for kind, words in _CANNOT.items() if isinstance(error, kind))
    return str(next(found, None) or gettext("It could not be done: %(why)s", why=str(error)))
