"""Words for what the books call status, event, answer and failure, and for days."""

from datetime import datetime

from babel.dates import format_date
from flask_babel import lazy_gettext as _

from shared.console import delivery_labels
from shared.console.language import current_language
from shared.domain.deliveries.try_results import ResponseClass
from shared.platform.web.languages import LIBYA

ANSWERS = {
    ResponseClass.SUCCESS: _("2xx: taken"),
    ResponseClass.REDIRECT: _("3xx: redirected"),
    ResponseClass.CLIENT_ERROR: _("4xx: refused"),
    ResponseClass.SERVER_ERROR: _("5xx: server error"),
    ResponseClass.NOTHING: _("No answer"),
    ResponseClass.NOT_TRIED: _("Not tried yet"),
}
EVENT_OPTIONS = [(str(event), text) for event, text in delivery_labels.EVENTS.items()]
STATUS_OPTIONS = [(status, delivery_labels.STATUSES[status]) for status in ("pending", "succeeded", "failed")]
ANSWER_OPTIONS = [(str(answer), text) for answer, text in ANSWERS.items()]


def day(at: datetime) -> str:
    """On calendars in Libya."""
    return format_date(at.astimezone(LIBYA).date(), "d MMM y", locale=current_language())
