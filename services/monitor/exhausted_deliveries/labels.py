"""Labels of failed deliveries: statuses, failures, resends, and why a delivery cannot be resent."""

from flask_babel import lazy_gettext as _

from shared.domain.deliveries.exhausted import GONE
from shared.domain.deliveries.pause import SendRefusal
from shared.domain.deliveries.try_results import NO_URL, TryFailure

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
