"""What the signed session cookie holds: the session token, and which accounts have signed in with this browser.

Failed sign-ins from a known browser are throttled separately. Somebody who guesses passwords elsewhere does not lock
out the person who owns the account.
"""

import hashlib
import secrets

from flask import session

_KNOWN = "known"
_MAX_KNOWN_ACCOUNTS = 5
_TOKEN = "token"  # noqa: S105  the name of a field
_KEPT_AT_SIGN_IN = ("lang", _KNOWN)


def throttle_key(email: str) -> str:
    """Return the name under which sign-ins with this email address are counted."""
    known = session.get(_KNOWN, {})
    return f"{email} {known['browser']}" if _fingerprint(email) in known.get("accounts", ()) else email


def remember_known_account(email: str) -> None:
    """Mark this browser as one from which this account has signed in. It remembers the latest five accounts."""
    known = session.get(_KNOWN) or {"browser": secrets.token_hex(16), "accounts": []}
    others = [account for account in known["accounts"] if account != _fingerprint(email)]
    session[_KNOWN] = {
        "browser": known["browser"],
        "accounts": [_fingerprint(email), *others][:_MAX_KNOWN_ACCOUNTS],
    }


def session_token() -> str:
    """Return the session token, or an empty string if nobody is signed in."""
    return str(session.get(_TOKEN, ""))


def set_session_token(token: str) -> None:
    """Sign this browser in. Of what the cookie held before, only the language and the known accounts stay."""
    kept = {name: session[name] for name in _KEPT_AT_SIGN_IN if name in session}
    session.clear()
    session.update(kept, **{_TOKEN: token})


def clear_session_token() -> None:
    set_session_token("")


def _fingerprint(email: str) -> str:
    return hashlib.sha256(email.encode("utf-8", "surrogatepass")).hexdigest()[:16]
