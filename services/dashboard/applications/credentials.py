"""An application's API keys and access tokens: issued, shown once, listed by how they begin, revoked."""

from dataclasses import dataclass
from uuid import UUID

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import record_action
from services.dashboard.applications.refusals import TOO_OLD, words_for
from services.dashboard.applications.wishes import Wish, Wishes, WishTooOldError
from services.dashboard.dependencies import Dependencies
from shared.domain.applications.credentials import (
    Credential,
    CredentialKind,
    find_credential,
    issue_credential,
    list_credentials,
    revoke_credential,
)
from shared.domain.applications.errors import CredentialExistsError, CredentialNotFoundError
from shared.domain.applications.registry import Application
from shared.domain.audit_log import Action

_SEE_OTHER = 303
_WISHES = {CredentialKind.API_KEY: Wish.API_KEY, CredentialKind.ACCESS_TOKEN: Wish.ACCESS_TOKEN}


@dataclass(frozen=True, slots=True)
class Listed:
    """All of one kind, newest first, and the wish for another one."""

    kind: CredentialKind
    credentials: list[Credential]
    wish: str

    @property
    def active(self) -> int:
        return sum(credential.revoked_at is None for credential in self.credentials)


@dataclass(frozen=True, slots=True)
class CredentialPages:
    dependencies: Dependencies

    def credentials(self, application: Application) -> ResponseReturnValue:
        wishes = Wishes(self.dependencies.box)
        with self.dependencies.database.transaction() as connection:
            credentials = list_credentials(connection, application.id)[::-1]
            with connection.cursor() as cursor:
                made = {kind: wishes.new(cursor, _WISHES[kind], application.id) for kind in CredentialKind}
        listed = [
            Listed(kind, [credential for credential in credentials if credential.kind is kind], made[kind])
            for kind in CredentialKind
        ]
        return render_template("applications/credentials.html", application=application, listed=listed)

    def issue(self, application: Application, kind: str) -> ResponseReturnValue:
        if kind not in set(CredentialKind):
            abort(404)
        wanted = CredentialKind(kind)
        wishes = Wishes(self.dependencies.box)
        try:
            wished = wishes.read(request.form.get("wish", ""), _WISHES[wanted], application.id)
            with self.dependencies.database.transaction() as connection:
                issued = issue_credential(connection, application.id, wanted, credential_id=wished)
                details = {"kind": wanted, "prefix": issued.prefix}
                record_action(
                    connection, Action.CREDENTIAL_ISSUED, application_id=application.id, details=details
                )
        except WishTooOldError:
            flash(str(TOO_OLD), "bad")
            return _back(application)
        except CredentialExistsError as error:
            flash(words_for(error), "info")
            return _back(application)
        return render_template("applications/issued.html", application=application, issued=issued)

    def revoke(self, application: Application, credential: UUID) -> ResponseReturnValue:
        try:
            with self.dependencies.database.transaction() as connection:
                found = find_credential(connection, application.id, str(credential))
                is_now = revoke_credential(connection, application.id, found.id)
                if is_now:
                    details = {"kind": found.kind, "prefix": found.prefix}
                    record_action(
                        connection,
                        Action.CREDENTIAL_REVOKED,
                        application_id=application.id,
                        details=details,
                    )
        except CredentialNotFoundError:
            abort(404)
        if is_now:
            flash(_("Revoked: %(prefix)s… is refused within seconds.", prefix=found.prefix), "good")
        else:
            flash(_("%(prefix)s… was revoked before. Nothing was changed.", prefix=found.prefix), "info")
        return _back(application)


def _back(application: Application) -> ResponseReturnValue:
    return redirect(url_for("applications.credentials", application=application.id), _SEE_OTHER)
