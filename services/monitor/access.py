"""Who is asking: an operator, for every route that does not say that it is open to all.

While the database is away nobody's session can be looked up. That is when operators need to see: whoever was known
a moment ago may still look, at what needs no database, and change nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from time import monotonic
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, Flask, Response, current_app, g, request
from flask.typing import ResponseReturnValue
from psycopg import Connection

from shared.console.account import Holder
from shared.console.cookies import current_token
from shared.console.requests import address, is_by_itself, is_for_nobody, to_sign_in
from shared.domain.accounts.operators import Operator, find_operator_session
from shared.domain.audit_log import Action, Actor, Details, record
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.tokens import hash_of

View = Callable[..., ResponseReturnValue]
KNOWN_FOR_S = 900
"""So long an operator may go on looking while the database is away."""
_OPEN = "_open_to_all"


@dataclass(frozen=True, slots=True)
class SignedIn:
    operator: Operator
    session_hash: bytes
    address: str

    @property
    def holder(self) -> Holder:
        return Holder(
            self.operator.id,
            self.operator.email,
            self.operator.password_hash,
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
    is_open: bool = False,
) -> None:
    """For operators only, unless it is open to all."""

    @wraps(view)
    def guarded(*arguments: Any, **values: Any) -> ResponseReturnValue:
        return view(*arguments, **values)

    setattr(guarded, _OPEN, is_open)
    blueprint.add_url_rule(rule, endpoint=view.__name__, view_func=guarded, methods=list(methods))


def is_open_to_all(view: object) -> bool:
    return getattr(view, _OPEN, False) is True


def signed_in() -> SignedIn:
    """Who is asking; not where the route is open to all."""
    return cast("SignedIn", g.signed_in)


def note(
    connection: Connection[Any],
    action: Action,
    *,
    application_id: UUID | None = None,
    details: Details | None = None,
) -> None:
    """Into the audit log, on behalf of who is asking; in the transaction that does what is noted. What concerns an
    application is in its merchant's log, too."""
    record(connection, signed_in().actor, action, application_id=application_id, details=details)


def guard(app: Flask, database: Database) -> None:
    known = _Known()

    @app.before_request
    def check() -> ResponseReturnValue | None:
        if is_for_nobody():
            return None
        assert request.endpoint is not None
        is_open = is_open_to_all(current_app.view_functions[request.endpoint])
        g.signed_in = _find(database, known)
        if is_open or g.signed_in is not None:
            return None
        return to_sign_in()

    @app.after_request
    def forget(response: Response) -> Response:
        """Who changes their account may have ended sessions, this one too. Those that count are soon known again."""
        who = g.get("signed_in")
        if who is not None and request.method == "POST" and request.blueprint == "people":
            known.forget_operator(who.operator.id)
        return response


class _Known:
    """Operators who were seen with the database there, by what their browsers hold."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[float, SignedIn]] = {}

    def remember(self, who: SignedIn) -> None:
        self._seen = {
            hashed: entry
            for hashed, entry in self._seen.items()
            if entry[0] > monotonic() - KNOWN_FOR_S and hashed != who.session_hash
        }
        self._seen[who.session_hash] = (monotonic(), who)

    def forget(self, hashed: bytes) -> None:
        self._seen.pop(hashed, None)

    def forget_operator(self, operator_id: UUID) -> None:
        self._seen = {
            hashed: entry for hashed, entry in self._seen.items() if entry[1].operator.id != operator_id
        }

    def find(self, hashed: bytes) -> SignedIn | None:
        at, who = self._seen.get(hashed, (0.0, None))
        return who if at > monotonic() - KNOWN_FOR_S else None


def _find(database: Database, known: _Known) -> SignedIn | None:
    token = current_token()
    hashed = hash_of(token)
    try:
        with database.cursor() as cursor:
            found = find_operator_session(cursor, token, is_use=not is_by_itself())
    except DatabaseUnavailableError:
        who = known.find(hashed) if token and request.method == "GET" else None
        if who is None:
            raise
        return who
    if found is None:
        known.forget(hashed)
        return None
    who = SignedIn(found.operator, found.hash, address())
    known.remember(who)
    return who
