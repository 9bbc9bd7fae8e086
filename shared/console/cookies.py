"""A browser somebody has signed in with before: who guesses elsewhere does not make them wait.

It is in the browser's cookie, which nobody can forge, and says nothing that others could read.
"""

import hashlib
import secrets

from flask import session

KNOWN = "known"
_MOST_ACCOUNTS = 5


def account_of(email: str) -> str:
    """Under which name sign-ins with this address are counted."""
    known = session.get(KNOWN, {})
    return f"{email} {known['browser']}" if _short(email) in known.get("accounts", ()) else email


def remember_account(email: str) -> None:
    known = session.get(KNOWN) or {"browser": secrets.token_hex(16), "accounts": []}
    others = [account for account in known["accounts"] if account != _short(email)]
    session[KNOWN] = {"browser": known["browser"], "accounts": [_short(email), *others][:_MOST_ACCOUNTS]}


def _short(email: str) -> str:
    return hashlib.sha256(email.encode("utf-8", "surrogatepass")).hexdigest()[:16]


_TOKEN = "token"  # noqa: S105  the name of a field
_KEPT = ("lang", "known")


def current_token() -> str:
    """Empty: nobody is signed in."""
    return str(session.get(_TOKEN, ""))


def remember(token: str) -> None:
    """The browser is signed in from now on. Of what it held before only this stays: the language, and who is known."""
    kept = {name: session[name] for name in _KEPT if name in session}
    session.clear()
    session.update(kept, **{_TOKEN: token})


def forget() -> None:
    remember("")
