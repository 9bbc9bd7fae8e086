"""The sign-in form. Its responses never reveal whether an email address has an account."""

from dataclasses import dataclass, field

from flask import render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from shared.console.requests import next_path
from shared.domain.accounts.members import InvalidEmailError, check_email

_UNPROCESSABLE = 422
_TOO_MANY = 429
_MAX_EMAIL = 254
_MAX_PASSWORD = 1000


@dataclass(frozen=True, slots=True)
class SubmittedSignIn:
    typed_email: str
    """As it was typed."""
    email: str
    """Normalised; empty, which is nobody's, if it is not an email address."""
    password: str = field(repr=False)

    def show_wrong_password(self) -> ResponseReturnValue:
        return _form(self.typed_email, _("Email or password is not right.")), _UNPROCESSABLE

    def show_throttled(self) -> ResponseReturnValue:
        sentence = _("Too many sign-ins have failed. Wait a minute and try again.")
        return _form(self.typed_email, sentence), _TOO_MANY


def read_sign_in_form() -> SubmittedSignIn:
    typed = request.form.get("email", "")
    try:
        email = check_email(typed)
    except InvalidEmailError:
        email = ""
    password = request.form.get("password", "")[:_MAX_PASSWORD]
    return SubmittedSignIn(typed[:_MAX_EMAIL], email, password)


def show_sign_in_form() -> str:
    return _form("", None)


def _form(email: str, error: str | None) -> str:
    return render_template("people/sign_in.html", email=email, error=error, next=next_path())
