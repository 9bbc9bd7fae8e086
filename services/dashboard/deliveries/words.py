"""Words for what the books call status, event, answer and failure, and for days."""

from datetime import datetime

from babel.dates import format_date
from flask_babel import lazy_gettext as _

from shared.console.language import current_language
from shared.domain.deliveries.facets import Answered
from shared.domain.deliveries.failures import NO_URL, Failure
from shared.domain.intents.states import EventType
from shared.platform.web.languages import LIBYA

STATUSES = {"pending": _("Pending"), "succeeded": _("Succeeded"), "failed": _("Failed")}
TONES = {"pending": "waiting", "succeeded": "good", "failed": "bad"}
EVENTS = {EventType.SUCCEEDED: _("Payment succeeded"), EventType.CANCELED: _("Payment canceled")}
ANSWERS = {
    Answered.SUCCESS: _("2xx: taken"),
    Answered.REDIRECT: _("3xx: redirected"),
    Answered.CLIENT_ERROR: _("4xx: refused"),
    Answered.SERVER_ERROR: _("5xx: server error"),
    Answered.NOTHING: _("No answer"),
    Answered.NOT_TRIED: _("Not tried yet"),
}
FAILURES = {
    Failure.DNS: _("Name not found"),
    Failure.REFUSED: _("Connection refused"),
    Failure.UNREACHABLE: _("Not reachable"),
    Failure.TLS: _("TLS error"),
    Failure.TIMEOUT: _("No answer in time"),
    Failure.BROKEN_ANSWER: _("Broken answer"),
    Failure.BLOCKED_ADDRESS: _("Address not allowed"),
    NO_URL: _("No webhook URL"),
}
EXPLAINED = {
    Failure.DNS: _("The host name in the URL could not be found in the DNS."),
    Failure.REFUSED: _("Nothing listens at this address and port: the connection was refused."),
    Failure.UNREACHABLE: _("No connection could be made to this address."),
    Failure.TLS: _(
        "The TLS connection failed. The certificate may have expired, be for another name, or miss its chain."
    ),
    Failure.TIMEOUT: _("The headers of an answer did not arrive within 10 seconds."),
    Failure.BROKEN_ANSWER: _("What came back is no complete HTTP answer."),
    Failure.BLOCKED_ADDRESS: _("The host name leads to an address that is not public. Nothing was sent."),
    NO_URL: _("The webhook URL was removed before this try came due. Nothing was sent."),
}
EVENT_OPTIONS = [(str(event), text) for event, text in EVENTS.items()]
STATUS_OPTIONS = list(STATUSES.items())
ANSWER_OPTIONS = [(str(answer), text) for answer, text in ANSWERS.items()]


def day(at: datetime) -> str:
    """On calendars in Libya."""
    return format_date(at.astimezone(LIBYA).date(), "d MMM y", locale=current_language())
