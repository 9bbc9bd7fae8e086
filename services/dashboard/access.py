"""Who is asking, and what they may: each route says what it needs, and one that says nothing answers nobody.

Routes with <application> in their address get the Application itself, if it is of the merchant of who is asking.
Everything else of another merchant's does not exist for them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, Flask, abort, current_app, g, request
from flask.typing import ResponseReturnValue
from psycopg import Connection

from shared.console.account import Holder
from shared.console.cookies import current_token
from shared.console.requests import address, is_by_itself, is_for_nobody, to_sign_in
from shared.domain.accounts.members import Member
from shared.domain.accounts.roles import ALLOWED, Permission
from shared.domain.accounts.sessions import find_session
from shared.domain.applications.errors import ApplicationNotFoundError
from shared.domain.applications.registry import get_application
from shared.domain.audit_log import Action, Actor, Details, record
from shared.platform.database.pool import Database
from shared.platform.uuids import uuid_in

View = Callable[..., ResponseReturnValue]
_NEEDS = "_needs"


class Open(Enum):
    """What a route says that is for anybody, signed in or not."""

    TO_ALL = "to all"


@dataclass(frozen=True, slots=True)
class SignedIn:
    member: Member
    session_hash: bytes
    address: str

    def may(self, permission: Permission) -> bool:
        return permission in ALLOWED[self.member.role]

    @property
    def holder(self) -> Holder:
        return Holder(
            self.member.id,
            self.member.email,
            self.member.password_hash or "",
            self.session_hash,
            self.address,
        )

    @property
    def actor(self) -> Actor:
        return Actor(self.member.email, self.member.id, self.address)


def add_route(
    blueprint: Blueprint, rule: str, view: View, needs: Permission | Open, methods: tuple[str, ...] = ("GET",)
) -> None:
    @wraps(view)
    def guarded(*arguments: Any, **values: Any) -> ResponseReturnValue:
        return view(*arguments, **values)

    setattr(guarded, _NEEDS, needs)
    blueprint.add_url_rule(rule, endpoint=view.__name__, view_func=guarded, methods=list(methods))


def needs_of(view: object) -> Permission | Open | None:
    """None: it says nothing, and answers nobody."""
    needs: Permission | Open | None = getattr(view, _NEEDS, None)
    return needs


def signed_in() -> SignedIn:
    """Who is asking; only where the route needs a permission."""
    return cast("SignedIn", g.signed_in)


def note(
    connection: Connection[Any],
    action: Action,
    *,
    application_id: UUID | None = None,
    details: Details | None = None,
) -> None:
    """Into the audit log, on behalf of who is asking; in the transaction that does what is noted."""
    who = signed_in()
    record(
        connection,
        who.actor,
        action,
        merchant_id=who.member.merchant_id,
        application_id=application_id,
        details=details,
    )


def guard(app: Flask, database: Database) -> None:
    @app.before_request
    def check() -> ResponseReturnValue | None:
        if is_for_nobody():
            return None
        assert request.endpoint is not None
        needs = needs_of(current_app.view_functions[request.endpoint])
        with database.cursor() as cursor:
            found = find_session(cursor, current_token(), is_use=not is_by_itself())
            g.signed_in = found and SignedIn(found.member, found.hash, address())
            if needs is Open.TO_ALL:
                return None
            if g.signed_in is None:
                return to_sign_in()
            assert isinstance(needs, Permission), f"{request.endpoint} does not say whom it is for"
            _check_application(cursor.connection, g.signed_in)
        if not g.signed_in.may(needs):
            abort(403)
        return None


def _check_application(connection: Connection[Any], who: SignedIn) -> None:
    """Before the permission: that there is such an application is nobody else's business."""
    values = request.view_args
    if values is None or "application" not in values:
        return
    application_id = uuid_in(values["application"]) or abort(404)
    try:
        application = get_application(connection, application_id)
    except ApplicationNotFoundError:
        abort(404)
    if application.merchant_id != who.member.merchant_id:
        abort(404)
    values["application"] = application
