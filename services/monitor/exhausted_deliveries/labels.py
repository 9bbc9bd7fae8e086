"""Labels of periods, and why a delivery cannot be resent."""

from flask_babel import lazy_gettext as _

from shared.domain.deliveries.pause import SendRefusal

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
