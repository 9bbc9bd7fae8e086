"""Pages for what cannot be shown or done, in words that all services share; each adds what only it can say."""

from collections.abc import Callable, Mapping

from flask import render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import LazyString
from flask_babel import lazy_gettext as _
from flask_wtf.csrf import CSRFError
from werkzeug import exceptions

from shared.console.requests import wants_part
from shared.domain.accounts.passwords import TooManyPasswordsError
from shared.platform.web.operations import OPERATIONS_PATHS

Words = tuple[LazyString, LazyString]
"""A title, and what to do."""
PageOf = Callable[[exceptions.HTTPException | None], str]

AWAY_CHANGING: Words = (
    _("We cannot answer at the moment"),
    _("What you asked for may have been done, or not. Look before you do it again."),
)
_OTHER: Words = _("This did not work"), _("Nothing was changed. Go back and try again.")
_COMMON: dict[type[exceptions.HTTPException], Words] = {
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


def show_trouble(words: Words) -> str:
    title, text = words
    return render_template("trouble.html", title=title, text=text)


def trouble_pages(
    away: Words, its_own: Mapping[type[exceptions.HTTPException], Words] | None = None
) -> PageOf:
    """Makes the page of an error; of None, and where a server is away, it says `away` to who only looked."""
    known = {**_COMMON, **(its_own or {})}

    def trouble_page(error: exceptions.HTTPException | None) -> str:
        if error is None or isinstance(error, exceptions.ServiceUnavailable):
            return show_trouble(away if request.method == "GET" else AWAY_CHANGING)
        fitting = (words for kind, words in known.items() if isinstance(error, kind))
        return show_trouble(next(fitting, _OTHER))

    return trouble_page


def too_many_passwords(trouble_page: PageOf) -> Callable[[TooManyPasswordsError], ResponseReturnValue]:
    def answer(_error: TooManyPasswordsError) -> ResponseReturnValue:
        return trouble_page(None), 503, {"Retry-After": "1"}

    return answer
