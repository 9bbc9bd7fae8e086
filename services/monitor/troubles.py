"""Pages for what cannot be shown or done: unknown, too old a form, a server that does not answer."""

from flask import render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext as _
from flask_wtf.csrf import CSRFError
from werkzeug import exceptions

from shared.kafka.clients import KafkaUnavailableError
from shared.pages.asking import wants_part
from shared.people.passwords import TooManyPasswordsError
from shared.web.operations import OPERATIONS_PATHS

_AWAY = (
    _("The database does not answer"),
    _("What needs it cannot be shown now. The overview still tells the rest."),
)
_AWAY_CHANGING = (
    _("We cannot answer at the moment"),
    _("What you asked for may have been done, or not. Look before you do it again."),
)
_KAFKA_AWAY = _("Kafka does not answer"), _("What needs it cannot be shown or done now. Nothing was changed.")
_OTHER = _("This did not work"), _("Nothing was changed. Go back and try again.")
# The first that fits.
_WORDS = {
    CSRFError: (
        _("This page was open for too long"),
        _("What you entered was not sent. Go back, open the page again, and allow cookies for it."),
    ),
    exceptions.NotFound: (
        _("There is no such page"),
        _("What you look for may have been removed, or was never here."),
    ),
    exceptions.Unauthorized: (
        _("You are not signed in"),
        _("Your session has ended. Sign in again; nothing was changed."),
    ),
}


def is_for_program() -> bool:
    return request.path in OPERATIONS_PATHS or wants_part()


def trouble_page(error: exceptions.HTTPException | None) -> str:
    """None: we cannot answer at the moment."""
    fitting = (words for kind, words in _WORDS.items() if isinstance(error, kind))
    away = _AWAY if request.method == "GET" else _AWAY_CHANGING
    is_away = error is None or isinstance(error, exceptions.ServiceUnavailable)
    title, text = away if is_away else next(fitting, _OTHER)
    return render_template("trouble.html", title=title, text=text)


def answer_kafka_away(_error: KafkaUnavailableError) -> ResponseReturnValue:
    if is_for_program():
        return {"message": "Kafka does not answer."}, 503
    title, text = _KAFKA_AWAY
    if request.method != "GET":
        _, text = _AWAY_CHANGING  # what was on the wire when our patience ended may still arrive
    return render_template("trouble.html", title=title, text=text), 503


def answer_too_many_passwords(_error: TooManyPasswordsError) -> ResponseReturnValue:
    return trouble_page(None), 503, {"Retry-After": "1"}
