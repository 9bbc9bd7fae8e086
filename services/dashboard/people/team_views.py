"""The team page: members and their roles. Owners invite members, change roles and remove members, and revoke the
credentials that former members issued."""

from dataclasses import dataclass
from uuid import UUID

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _
from flask_babel import lazy_gettext

from services.dashboard.access import current_session, record_action
from services.dashboard.dependencies import Dependencies
from services.dashboard.people.invitations import (
    AlreadyJoinedError,
    TooManyInvitationsError,
    TooManyOpenInvitationsError,
    invite,
    mark_shown,
    reissue_invitation,
)
from services.dashboard.people.mail import MailFailedError, send_invitation
from shared.console.audit_log import CREDENTIAL_KINDS, ROLES
from shared.domain.accounts.members import (
    InvalidEmailError,
    LastOwnerError,
    MemberExistsError,
    MemberNotFoundError,
    change_role,
    check_email,
    get_member,
    list_members,
    remove_member,
)
from shared.domain.accounts.roles import Role
from shared.domain.applications.credentials import (
    list_credentials_of_former_members,
    revoke_credential,
)
from shared.domain.audit_log import Action
from shared.platform.errors import RefusedError

_REFUSALS: dict[type[RefusedError], str] = {
    InvalidEmailError: lazy_gettext("This is not an email address."),
    MemberExistsError: lazy_gettext("Somebody with this email address is already in your team."),
    AlreadyJoinedError: lazy_gettext("This invitation was already accepted."),
    TooManyOpenInvitationsError: lazy_gettext(
        "Your team has too many open invitations. Remove some of them, or wait until they are accepted."
    ),
    TooManyInvitationsError: lazy_gettext(
        "Your team has made too many invitations within a day. Try again tomorrow."
    ),
    LastOwnerError: lazy_gettext("Your team would have no owner left. Make somebody else an owner first."),
}
_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class TeamPages:
    dependencies: Dependencies

    def team(self) -> ResponseReturnValue:
        return self._page()

    def invite(self) -> ResponseReturnValue:
        """Invite a member. The link is mailed or, without mail, shown only now, because only its hash is stored."""
        email = request.form.get("email", "")
        role = _parse_role(request.form.get("role", ""))
        try:
            with self.dependencies.database.transaction() as connection:
                merchant_id = current_session().member.merchant_id
                _member, token = invite(connection, merchant_id, email, role, is_emailed=self._has_mail)
                details = {"email": check_email(email), "role": str(role)}
                record_action(connection, Action.MEMBER_INVITED, details=details)
        except RefusedError as refused:
            return self._page(email=email, role=role, error=_refusal_text(refused)), _UNPROCESSABLE
        return self._show_invitation(check_email(email), token)

    def invite_again(self, person: UUID) -> ResponseReturnValue:
        try:
            with self.dependencies.database.transaction() as connection:
                invited = get_member(connection, current_session().member.merchant_id, person)
                token = reissue_invitation(connection, invited, is_emailed=self._has_mail)
                record_action(
                    connection, Action.MEMBER_INVITED, details={"email": invited.email, "role": invited.role}
                )
        except MemberNotFoundError:
            abort(404)
        except RefusedError as refused:
            flash(_refusal_text(refused), "bad")
            return _redirect_to_team()
        return self._show_invitation(invited.email, token)

    def change_role(self, person: UUID) -> ResponseReturnValue:
        role = _parse_role(request.form.get("role", ""))
        try:
            with self.dependencies.database.transaction() as connection:
                changed = get_member(connection, current_session().member.merchant_id, person)
                if changed.role is not role:
                    change_role(connection, changed, role)
                    details = {"email": changed.email, "from": str(changed.role), "to": str(role)}
                    record_action(connection, Action.ROLE_CHANGED, details=details)
        except MemberNotFoundError:
            abort(404)
        except RefusedError as refused:
            flash(_refusal_text(refused), "bad")
        else:
            flash(_("The role was changed."), "good")
        return _redirect_to_team()

    def remove(self, person: UUID) -> ResponseReturnValue:
        try:
            with self.dependencies.database.transaction() as connection:
                removed = get_member(connection, current_session().member.merchant_id, person)
                remove_member(connection, removed)
                kept = list_credentials_of_former_members(connection, removed.merchant_id)
                record_action(
                    connection, Action.MEMBER_REMOVED, details={"email": removed.email, "role": removed.role}
                )
        except MemberNotFoundError:
            flash(_("This member was already removed."), "info")
        except RefusedError as refused:
            flash(_refusal_text(refused), "bad")
        else:
            flash(_("%(email)s was removed, and all their sessions have ended.", email=removed.email), "good")
            if any(credential.issuer == removed.email for credential in kept):
                flash(_("API credentials that they issued still work. You can revoke them below."), "bad")
        return _redirect_to_team()

    def revoke_credentials(self) -> ResponseReturnValue:
        """Revoke the selected credentials of former members. Others, and those revoked meanwhile, are ignored."""
        wanted = set(request.form.getlist("credential"))
        revoked = 0
        with self.dependencies.database.transaction() as connection:
            merchant_id = current_session().member.merchant_id
            for credential in list_credentials_of_former_members(connection, merchant_id):
                application_id = credential.application_id
                if str(credential.id) in wanted and revoke_credential(
                    connection, application_id, credential.id
                ):
                    details = {"kind": credential.kind, "prefix": credential.prefix}
                    record_action(
                        connection, Action.CREDENTIAL_REVOKED, application_id=application_id, details=details
                    )
                    revoked += 1
        if revoked:
            flash(_("Revoked: %(count)d. They are refused within seconds.", count=revoked), "good")
        else:
            flash(_("No credential was selected. Nothing was changed."), "info")
        return _redirect_to_team()

    @property
    def _has_mail(self) -> bool:
        return self.dependencies.settings.dashboard.mail is not None

    def _show_invitation(self, email: str, token: str) -> str:
        """Mail the link. Show it only if it was not mailed: a link that an owner has seen proves nothing."""
        link = self.dependencies.settings.public_urls.dashboard + url_for("people.invitation", token=token)
        mail = self.dependencies.settings.dashboard.mail
        if mail is not None:
            try:
                send_invitation(mail, email, current_session().member.merchant_name, link)
            except MailFailedError:
                with self.dependencies.database.transaction() as connection:
                    mark_shown(connection, token)
                flash(_("The invitation could not be mailed. Send the link yourself."), "bad")
            else:
                flash(_("The invitation was mailed to %(email)s.", email=email), "good")
                return self._page()
        return self._page(link=link, invited=email)

    def _page(
        self,
        *,
        email: str = "",
        role: Role = Role.DEVELOPER,
        error: str | None = None,
        link: str | None = None,
        invited: str = "",
    ) -> str:
        with self.dependencies.database.transaction() as connection:
            merchant_id = current_session().member.merchant_id
            members = list_members(connection, merchant_id)
            credentials = list_credentials_of_former_members(connection, merchant_id)
        return render_template(
            "people/team.html",
            members=members,
            former_members_credentials=credentials,
            kind_names=CREDENTIAL_KINDS,
            roles=[(role.value, text) for role, text in ROLES.items()],
            role_names=ROLES,
            email=email,
            role=role,
            error=error,
            link=link,
            invited=invited,
        )


def _parse_role(text: str) -> Role:
    return next((role for role in Role if role == text), None) or abort(422)


def _refusal_text(refused: RefusedError) -> str:
    return str(_REFUSALS[type(refused)])


def _redirect_to_team() -> ResponseReturnValue:
    return redirect(url_for("people.team"), _SEE_OTHER)
