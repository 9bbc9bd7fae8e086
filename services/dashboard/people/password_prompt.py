"""Asks for the password before a sensitive change, if it was not entered recently in this session.

The page carries what was submitted in hidden fields and sends it to the same address again, so nothing typed is lost
and nothing of it is stored here.
"""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from flask import render_template, request
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import MemberSession
from services.dashboard.dependencies import Dependencies
from services.dashboard.people.sign_in_views import verify_password
from shared.console.cookies import remember_known_account
from shared.domain.accounts.sessions import RECENT_PASSWORD_S, record_password_entry
from shared.domain.accounts.throttles import SignInThrottledError
from shared.domain.accounts.users import lock_unchanged_password

PASSWORD_FIELD = "confirm_password"  # noqa: S105  the name of a field
_OWN_FIELDS = {PASSWORD_FIELD, "confirm_username", "csrf_token"}
_MAX_PASSWORD = 1000
_FORBIDDEN = 403
_UNPROCESSABLE = 422
_TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class PasswordPrompt:
    dependencies: Dependencies

    def confirm(self, session: MemberSession) -> ResponseReturnValue | None:
        """Return None if the password was entered recently or with this request, and otherwise the page that asks.

        Wrong passwords are counted and recorded like those of the sign-in. Raises TooManyPasswordChecksError.
        """
        if session.has_recent_password:
            return None
        if PASSWORD_FIELD not in request.form:
            return _page(session), _FORBIDDEN
        password = request.form[PASSWORD_FIELD][:_MAX_PASSWORD]
        try:
            is_right = self._verify(session, password)
        except SignInThrottledError:
            return _page(session, _("Too many wrong passwords. Wait a minute and try again.")), _TOO_MANY
        return None if is_right else (_page(session, _("This is not your password.")), _UNPROCESSABLE)

    def _verify(self, session: MemberSession, password: str) -> bool:
        member, user = session.member, session.member.user
        assert user is not None, "they are signed in"
        tried = verify_password(self.dependencies, member.email, user, [member], password)
        if tried.verified is None:
            return False
        with self.dependencies.database.transaction() as connection:
            self.dependencies.throttles.record_success(connection, tried.attempt)
            if not lock_unchanged_password(connection, user):
                return False
            record_password_entry(connection, session.session_hash)
        remember_known_account(user)
        return True


def _page(session: MemberSession, error: str | None = None) -> str:
    submitted = [(name, value) for name, value in request.form.items(multi=True) if name not in _OWN_FIELDS]
    query = urlencode(list(request.args.items(multi=True)))
    return render_template(
        "people/password_prompt.html",
        email=session.member.email,
        minutes=RECENT_PASSWORD_S // 60,
        # Not url_for: the guard has replaced ids in `view_args` by objects.
        target=quote(request.path) + (f"?{query}" if query else ""),
        submitted=submitted,
        password_field=PASSWORD_FIELD,
        error=error,
    )
