"""Pages of an application's API keys and access tokens. A new one is shown once; later only its prefix is."""

from dataclasses import dataclass
from uuid import UUID

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.dashboard.access import current_session, record_action
from services.dashboard.applications.form_tokens import FormPurpose, FormTokenExpiredError, FormTokens
from services.dashboard.applications.labels import FORM_EXPIRED, refusal_text
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
_FORM_PURPOSES = {
    CredentialKind.API_KEY: FormPurpose.API_KEY,
    CredentialKind.ACCESS_TOKEN: FormPurpose.ACCESS_TOKEN,
}


@dataclass(frozen=True, slots=True)
class CredentialList:
    """All credentials of one kind, newest first, and the form token to issue another one."""

    kind: CredentialKind
    credentials: list[Credential]
    form_token: str

    @property
    def active(self) -> int:
        return sum(credential.revoked_at is None for credential in self.credentials)


@dataclass(frozen=True, slots=True)
class CredentialPages:
    dependencies: Dependencies

    def credentials(self, application: Application) -> ResponseReturnValue:
        form_tokens = FormTokens(self.dependencies.form_box)
        with self.dependencies.database.transaction() as connection:
            credentials = list_credentials(connection, application.id)[::-1]
            with connection.cursor() as cursor:
                tokens = {
                    kind: form_tokens.create(cursor, _FORM_PURPOSES[kind], application.id)
                    for kind in CredentialKind
                }
        listed = [
            CredentialList(
                kind, [credential for credential in credentials if credential.kind is kind], tokens[kind]
            )
            for kind in CredentialKind
        ]
        return render_template("applications/credentials.html", application=application, listed=listed)

    def issue(self, application: Application, kind: str) -> ResponseReturnValue:
        if kind not in set(CredentialKind):
            abort(404)
        wanted = CredentialKind(kind)
        form_tokens = FormTokens(self.dependencies.form_box)
        try:
            credential_id = form_tokens.read(
                request.form.get("form_token", ""), _FORM_PURPOSES[wanted], application.id
            )
            with self.dependencies.database.transaction() as connection:
                issued = issue_credential(
                    connection,
                    application.id,
                    wanted,
                    credential_id=credential_id,
                    issued_by=current_session().member.id,
                )
                details = {"kind": wanted, "prefix": issued.prefix}
                record_action(
                    connection, Action.CREDENTIAL_ISSUED, application_id=application.id, details=details
                )
        except FormTokenExpiredError:
            flash(str(FORM_EXPIRED), "bad")
            return _redirect_to_credentials(application)
        except CredentialExistsError as error:
            flash(refusal_text(error), "info")
            return _redirect_to_credentials(application)
        return render_template("applications/issued.html", application=application, issued=issued)

    def revoke(self, application: Application, credential: UUID) -> ResponseReturnValue:
        try:
            with self.dependencies.database.transaction() as connection:
                found = find_credential(connection, application.id, str(credential))
                is_revoked_now = revoke_credential(connection, application.id, found.id)
                if is_revoked_now:
                    details = {"kind": found.kind, "prefix": found.prefix}
                    record_action(
                        connection,
                        Action.CREDENTIAL_REVOKED,
                        application_id=application.id,
                        details=details,
                    )
        except CredentialNotFoundError:
            abort(404)
        if is_revoked_now:
            flash(_("Revoked: %(prefix)s… is refused within seconds.", prefix=found.prefix), "good")
        else:
            flash(_("%(prefix)s… was already revoked. Nothing was changed.", prefix=found.prefix), "info")
        return _redirect_to_credentials(application)


def _redirect_to_credentials(application: Application) -> ResponseReturnValue:
    return redirect(url_for("applications.credentials", application=application.id), _SEE_OTHER)
