"""Which operator is signed in to the monitor.

While the database is unavailable, no session can be looked up. That is when operators need the monitor most: an
operator who was recently signed in may still read the pages that need no database, and change nothing.
"""

from dataclasses import dataclass
from time import monotonic
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, Flask, Response, g, request
from psycopg import Connection

from shared.console import guard
from shared.console.cookies import session_token
from shared.console.guard import Access, SignedInAccount, View
from shared.console.requests import client_address, is_background_poll
from shared.domain.accounts.operators import Operator, find_operator_session
from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.tokens import hash_token

REMEMBERED_FOR_S = 900
"""For so long an operator may go on reading while the database is unavailable."""


@dataclass(frozen=True, slots=True)
class OperatorSession:
    operator: Operator
    session_hash: bytes
    address: str

    @property
    def account(self) -> SignedInAccount:
        return SignedInAccount(
            self.operator.id,
            self.operator.email,
            self.operator,
            self.session_hash,
            self.address,
        )

    @property
    def actor(self) -> Actor:
        return Actor(f"operator {self.operator.email}", address=self.address, operator_id=self.operator.id)


def add_route(
    blueprint: Blueprint,
    rule: str,
    view: View,
    methods: tuple[str, ...] = ("GET",),
    *,
    requires: Access = Access.SIGNED_IN,
) -> None:
    """Add a route for operators, unless `requires` says that it is public."""
    guard.add_route(blueprint, rule, view, requires, methods)


def current_session() -> OperatorSession:
    """Return which operator is signed in. Do not call it in public routes."""
    return cast("OperatorSession", g.signed_in)


def record_action(
    connection: Connection[Any],
    action: Action,
    *,
    application_id: UUID | None = None,
    details: AuditDetails | None = None,
) -> None:
    """Write an action of the operator to the audit log, in the transaction of the action itself.

    With `application_id`, it also appears in the audit log of the application's merchant.
    """
    add_audit_entry(
        connection, current_session().actor, action, application_id=application_id, details=details
    )


def install_guard(app: Flask, database: Database) -> None:
    """Require that an operator is signed in, except for public routes."""
    recent = _RecentSessions()
    guard.install_guard(app, lambda: _identify(database, recent))

    @app.after_request
    def forget(response: Response) -> Response:
        """Who changes their account may have ended sessions, this one too. Valid ones are soon remembered again."""
        session = g.get("signed_in")
        if session is not None and request.method == "POST" and request.blueprint == "people":
            recent.forget_operator(session.operator.id)
        return response


class _RecentSessions:
    """Sessions that the database has confirmed recently, by the hash of their token."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[float, OperatorSession]] = {}

    def remember(self, who: OperatorSession) -> None:
        self._seen = {
            hashed: entry
            for hashed, entry in self._seen.items()
            if entry[0] > monotonic() - REMEMBERED_FOR_S and hashed != who.session_hash
        }
        self._seen[who.session_hash] = (monotonic(), who)

    def forget(self, hashed: bytes) -> None:
        self._seen.pop(hashed, None)

    def forget_operator(self, operator_id: UUID) -> None:
        self._seen = {
            hashed: entry for hashed, entry in self._seen.items() if entry[1].operator.id != operator_id
        }

    def find(self, hashed: bytes) -> OperatorSession | None:
        at, who = self._seen.get(hashed, (0.0, None))
        return who if at > monotonic() - REMEMBERED_FOR_S else None


def _identify(database: Database, recent: _RecentSessions) -> OperatorSession | None:
    token = session_token()
    hashed = hash_token(token)
    try:
        with database.cursor() as cursor:
            found = find_operator_session(cursor, token, is_use=not is_background_poll())
    except DatabaseUnavailableError:
        who = recent.find(hashed) if token and request.method == "GET" else None
        if who is None:
            raise
        return who
    if found is None:
        recent.forget(hashed)
        return None
    who = OperatorSession(found.operator, found.hash, client_address())
    recent.remember(who)
    return who
