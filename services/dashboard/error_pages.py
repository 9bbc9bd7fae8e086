"""The error pages that only the dashboard has."""

from flask_babel import lazy_gettext as _
from werkzeug import exceptions

from shared.console.error_pages import make_error_page

error_page = make_error_page(
    unavailable=(_("We cannot answer at the moment"), _("Try again in a moment.")),
    own_texts={
        exceptions.Forbidden: (
            _("Your role does not allow this"),
            _("Nothing was changed. An owner of your team can do it, or give you another role."),
        ),
        exceptions.Gone: (
            _("This invitation is over"),
            _("It was used, or its seven days have passed. Ask an owner of the team for a new link."),
        ),
    },
)
