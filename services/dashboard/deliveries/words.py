"""Words for what the books call status, event, answer and failure, and for days."""

from datetime import datetime

from babel.dates import format_date
from flask_babel import lazy_gettext as _

from shared.console.language import current_language
from shared.domain.deliveries.try_results import NO_URL, ResponseClass, TryFailure
from shared.domain.intents.states import EventType
from shared.platform.web.languages import LIBYA

STATUSES = {"pending": _("Pending"), "succeeded": _("Succeeded"), "failed": _("Failed")}
TONES = {"pending": "waiting", "succeeded": "good", "failed": "bad"}
EVENTS = {EventType.SUCCEEDED: _("Payment succeeded"), EventType.CANCELED: _("Payment canceled")}
ANSWERS = {
    ResponseClass.SUCCESS: _("2xx: taken"),
    ResponseClass.REDIRECT: _("3xx: redirected"),
    ResponseClass.CLIENT_ERROR: _("4xx: refused"),
    ResponseClass.SERVER_ERROR: _("5xx: server error"),
    ResponseClass.NOTHING: _("No answer"),
    ResponseClass.NOT_TRIED: _("Not tried yet"),
}
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
EXPLAINED = {
    TryFailure.DNS: _("The host name in the URL could not be found in the DNS."),
    TryFailure.REFUSED: _("Nothing listens at this address and port: the connection was refused."),
    TryFailure.UNREACHABLE: _("No connection could be made to this address."),
    TryFailure.TLS: _(
        "The TLS connection failed. The certificate may have expired, be for another name, or miss its chain."
    ),
    TryFailure.TIMEOUT: _("The headers of an answer did not arrive within 10 seconds."),
    TryFailure.BROKEN_ANSWER: _("What came back is no complete HTTP answer."),
    TryFailure.BLOCKED_ADDRESS: _("The host name leads to an address that is not public. Nothing was sent."),
    NO_URL: _("The webhook URL was removed before this try came due. Nothing was sent."),
}
EVENT_OPTIONS = [(str(event), text) for event, text in EVENTS.items()]
STATUS_OPTIONS = list(STATUSES.items())
ANSWER_OPTIONS = [(str(answer), text) for answer, text in ANSWERS.items()]


def day(at: datetime) -> str:
    """On calendars in Libya."""
    return format_date(at.astimezone(LIBYA).date(), "d MMM y", locale=current_language())
