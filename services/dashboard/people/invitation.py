"""What an invited person meets: a link, good once, behind which they choose their password."""

from dataclasses import dataclass

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import Gone

from services.dashboard.dependencies import Dependencies
from services.dashboard.people.invitations import InvitationOverError, accept, look_at
from services.dashboard.people.signing_in import begin_as
from shared.console.account import password_rule
from shared.domain.accounts.passwords import PasswordNotAllowedError, check_password
from shared.domain.audit_log import Action, Actor, add_audit_entry

_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class InvitationPages:
    dependencies: Dependencies

    def invitation(self, token: str) -> ResponseReturnValue:
        return self._page(token, None)

    def join(self, token: str) -> ResponseReturnValue:
        password = request.form.get("password", "")
        email, _merchant = self._look(token)
        try:
            check_password(password, email)
        except PasswordNotAllowedError:
            return self._page(token, password_rule()), _UNPROCESSABLE
        try:
            with self.dependencies.database.transaction() as connection:
                member_id, merchant_id, email = accept(connection, token, password)
                actor = Actor(email, member_id, request.remote_addr)
                add_audit_entry(connection, actor, Action.MEMBER_JOINED, merchant_id=merchant_id)
                begin_as(connection, member_id, merchant_id, email)
        except InvitationOverError:
            raise Gone from None
        return redirect(url_for("applications.listing"), _SEE_OTHER)

    def _page(self, token: str, error: str | None) -> str:
        email, merchant = self._look(token)
        return render_template(
            "people/invitation.html", token=token, email=email, merchant=merchant, error=error
        )

    def _look(self, token: str) -> tuple[str, str]:
        try:
            with self.dependencies.database.transaction() as connection:
                return look_at(connection, token)
        except InvitationOverError:
            raise Gone from None
