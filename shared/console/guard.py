"""The sign-in guard: each route states what it requires, and the guard checks that before the view runs.

Each service says how it finds out who is signed in, and what they may do. A route that states nothing answers nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import Any, Protocol, TypeVar
from uuid import UUID

from flask import Blueprint, Flask, current_app, g, request
from flask.typing import ResponseReturnValue

from shared.console.requests import is_public_asset, redirect_to_sign_in
from shared.domain.accounts.passwords import HasPassword

View = Callable[..., ResponseReturnValue]
_REQUIREMENT = "_requirement"
_SENSITIVE = "_sensitive"


class Access(Enum):
    """What a route requires if it needs no particular permission."""

    PUBLIC = "anybody, signed in or not"
    SIGNED_IN = "anybody who is signed in"


@dataclass(frozen=True, slots=True)
class SignedInAccount:
    """The account that is signed in, and the session of this request."""

    id: UUID
    """Of the member or operator."""
    email: str
    holder: HasPassword
    """Who has the password: the member's user account, or the operator."""
    session_hash: bytes
    address: str


class Session(Protocol):
    """What the console needs to know of a service's own session class."""

    @property
    def account(self) -> SignedInAccount: ...


S = TypeVar("S", bound=Session)


def add_route(
    blueprint: Blueprint,
    rule: str,
    view: View,
    requires: Enum,
    methods: tuple[str, ...] = ("GET",),
    *,
    sensitive: bool = False,
) -> None:
    """Add a route that requires `requires`: an `Access`, or a permission that the service's `authorize` knows."""

    @wraps(view)
    def guarded(*arguments: Any, **values: Any) -> ResponseReturnValue:
        return view(*arguments, **values)

    setattr(guarded, _REQUIREMENT, requires)
    setattr(guarded, _SENSITIVE, sensitive)
    blueprint.add_url_rule(rule, endpoint=view.__name__, view_func=guarded, methods=list(methods))


def add_sensitive_route(blueprint: Blueprint, rule: str, view: View, requires: Enum) -> None:
    """Add a route for POST that also requires that the password was entered recently in this session."""
    add_route(blueprint, rule, view, requires, ("POST",), sensitive=True)


def requirement_of(view: object) -> Enum | None:
    """Return what the view requires, or None if it does not say. Such a view answers nobody."""
    requirement: Enum | None = getattr(view, _REQUIREMENT, None)
    return requirement


def is_sensitive(view: object) -> bool:
    return bool(getattr(view, _SENSITIVE, False))


def install_guard(
    app: Flask,
    identify: Callable[[], S | None],
    authorize: Callable[[S, Enum], None] | None = None,
    confirm_password: Callable[[S], ResponseReturnValue | None] | None = None,
) -> None:
    """Check every request before its view runs, and keep who is signed in as `g.signed_in`.

    `identify` returns the session of the request, or None. `authorize` aborts the request if the session may not use a
    route with this requirement; without it, every session may. `confirm_password` is called for sensitive routes, after
    `authorize`: it returns None if the password was entered recently, and otherwise the page that asks for it.
    """

    @app.before_request
    def check() -> ResponseReturnValue | None:
        if is_public_asset():
            return None
        assert request.endpoint is not None
        view = current_app.view_functions[request.endpoint]
        requirement = requirement_of(view)
        session = g.signed_in = identify()
        if requirement is Access.PUBLIC:
            return None
        if session is None:
            return redirect_to_sign_in()
        assert requirement is not None, f"{request.endpoint} does not state what it requires"
        if authorize is not None:
            authorize(session, requirement)
        if is_sensitive(view):
            assert confirm_password is not None, (
                f"{request.endpoint} is sensitive, and nothing asks for the password"
            )
            return confirm_password(session)
        return None
