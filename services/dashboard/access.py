"""Who is signed in to the dashboard, and what they may do.

A route with <application> in its address gets the Application itself, if it belongs to the merchant of the member who
is signed in. Whatever belongs to another merchant does not exist for them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast
from uuid import UUID

from flask import Flask, abort, g, request
from flask.typing import ResponseReturnValue
from psycopg import Connection

from services.dashboard.row_security import RowScope, ScopedDatabase, limit_request
from shared.console import guard
from shared.console.cookies import session_token
from shared.console.guard import SignedInAccount
from shared.console.requests import client_address, is_background_poll
from shared.domain.accounts.members import Member
from shared.domain.accounts.roles import ROLE_PERMISSIONS, Permission
from shared.domain.accounts.sessions import find_session
from shared.domain.applications.errors import ApplicationNotFoundError
from shared.domain.applications.registry import get_application
from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.domain.security_changes import SECURITY_ACTIONS
from shared.platform.database.pool import Database
from shared.platform.uuids import parse_uuid

_NOTED = "noted_security_changes"


@dataclass(frozen=True, slots=True)
class MemberSession:
    member: Member
    session_hash: bytes
    address: str
    has_recent_password: bool

    def may(self, permission: Permission) -> bool:
        return permission in ROLE_PERMISSIONS[self.member.role]

    @property
    def account(self) -> SignedInAccount:
        user = self.member.user
        assert user is not None, "they are signed in"
        return SignedInAccount(self.member.id, self.member.email, user, self.session_hash, self.address)

    @property
    def actor(self) -> Actor:
        return Actor(self.member.email, self.member.id, self.address)


def current_session() -> MemberSession:
    """Return who is signed in. Call it only in routes that require a permission."""
    return cast("MemberSession", g.signed_in)


def record_action(
    connection: Connection[Any],
    action: Action,
    *,
    application_id: UUID | None = None,
    details: AuditDetails | None = None,
) -> None:
    """Write an action of the member who is signed in to the audit log, in the transaction of the action itself."""
    session = current_session()
    entry_id = add_audit_entry(
        connection,
        session.actor,
        action,
        merchant_id=session.member.merchant_id,
        application_id=application_id,
        details=details,
    )
    if action in SECURITY_ACTIONS:
        note_security_change(session.member.merchant_id, entry_id)


def note_security_change(merchant_id: UUID, entry_id: UUID) -> None:
    """Remember that this request wrote a security change to the audit log. Owners are told if it is committed."""
    g.setdefault(_NOTED, {}).setdefault(merchant_id, []).append(entry_id)


def take_noted_changes() -> dict[UUID, list[UUID]]:
    """Return the security changes of this request by merchant, committed or not, and forget them."""
    noted: dict[UUID, list[UUID]] = g.pop(_NOTED, {})
    return noted


def install_guard(
    app: Flask,
    database: ScopedDatabase,
    confirm_password: Callable[[MemberSession], ResponseReturnValue | None],
) -> None:
    """Require that members are signed in, have the permission that the route states, and entered their password
    recently if it is sensitive."""

    def identify() -> MemberSession | None:
        with database.unscoped_cursor() as cursor:  # a function of the owner finds it
            found = find_session(cursor, session_token(), is_use=not is_background_poll())
        if found is None:
            return None
        limit_request(RowScope(found.member.merchant_id, found.member.email))
        return MemberSession(found.member, found.hash, client_address(), found.has_recent_password)

    def authorize(session: MemberSession, requirement: Enum) -> None:
        assert isinstance(requirement, Permission), f"{request.endpoint} does not state a permission"
        # First the application: a member without the permission must not learn that another merchant's one exists.
        _resolve_application(database, session)
        if not session.may(requirement):
            abort(403)

    guard.install_guard(app, identify, authorize, confirm_password)


def _resolve_application(database: Database, session: MemberSession) -> None:
    values = request.view_args
    if values is None or "application" not in values:
        return
    application_id = parse_uuid(values["application"]) or abort(404)
    try:
        with database.cursor() as cursor:
            application = get_application(cursor.connection, application_id)
    except ApplicationNotFoundError:
        abort(404)
    if application.merchant_id != session.member.merchant_id:
        abort(404)
    values["application"] = application
