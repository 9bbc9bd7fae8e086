"""The sign-in form: what was entered, and what it says back. Nothing tells whether an address is known."""

from dataclasses import dataclass, field

from flask import render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from shared.console.requests import wanted_path
from shared.domain.accounts.members import EmailNotAllowedError, check_email

_UNPROCESSABLE = 422
_TOO_MANY = 429
_LONGEST_EMAIL = 254
_LONGEST_PASSWORD = 1000


@dataclass(frozen=True, slots=True)
class Entered:
    shown: str
    """The address as it was typed."""
    email: str
    """Empty, which is nobody's, where that is no address."""
    password: str = field(repr=False)

    def not_right(self) -> ResponseReturnValue:
        return _form(self.shown, _("Email or password is not right.")), _UNPROCESSABLE

    def slow_down(self) -> ResponseReturnValue:
        sentence = _("Too many sign-ins have failed. Wait a minute and try again.")
        return _form(self.shown, sentence), _TOO_MANY


def what_was_entered() -> Entered:
    typed = request.form.get("email", "")
    try:
        email = check_email(typed)
    except EmailNotAllowedError:
        email = ""
    password = request.form.get("password", "")[:_LONGEST_PASSWORD]
    return Entered(typed[:_LONGEST_EMAIL], email, password)


def empty_form() -> str:
    return _form("", None)


def _form(email: str, error: str | None) -> str:
    return render_template("people/sign_in.html", email=email, error=error, next=wanted_path())
