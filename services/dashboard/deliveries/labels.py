"""Labels of the delivery list: the choices of its filters, days, and why nothing can be resent."""

from datetime import datetime
from uuid import UUID

from babel.dates import format_date
from flask import url_for
from flask_babel import lazy_gettext as _
from markupsafe import Markup

from shared.console import delivery_labels
from shared.console.language import current_language
from shared.domain.deliveries.pause import SendRefusal
from shared.domain.deliveries.try_results import EVENTS, STATUSES, ResponseClass
from shared.platform.web.languages import LIBYA

RESPONSE_CLASSES = {
    ResponseClass.SUCCESS: _("2xx: taken"),
    ResponseClass.REDIRECT: _("3xx: redirected"),
    ResponseClass.CLIENT_ERROR: _("4xx: refused"),
    ResponseClass.SERVER_ERROR: _("5xx: server error"),
    ResponseClass.NOTHING: _("No answer"),
    ResponseClass.NOT_TRIED: _("Not tried yet"),
}
EVENT_OPTIONS = [(str(event), delivery_labels.EVENTS[event]) for event in EVENTS]
STATUS_OPTIONS = [(status, delivery_labels.STATUSES[status]) for status in STATUSES]
RESPONSE_OPTIONS = [(str(response), text) for response, text in RESPONSE_CLASSES.items()]

_RESEND_REFUSALS = {
    SendRefusal.NO_URL: _("Nothing can be resent: the application has no webhook URL. Set one first."),
    SendRefusal.PAUSED: _("Nothing can be resent: an operator has paused the webhooks of this application."),
}


def day(at: datetime) -> str:
    """Format the day of this moment in Libya's time zone."""
    return format_date(at.astimezone(LIBYA).date(), "d MMM y", locale=current_language())


def resend_refusal_text(refusal: SendRefusal, application_id: UUID) -> Markup:
    """Return why nothing can be resent, with a link to where the webhook URL is set if that is missing."""
    text = Markup("{}").format(_RESEND_REFUSALS[refusal])
    if refusal is not SendRefusal.NO_URL:
        return text
    url = url_for("applications.webhook", application=application_id)
    return Markup('{} <a href="{}">{}</a>').format(text, url, _("Webhook settings"))
