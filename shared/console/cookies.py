"""What the signed session cookie holds: the session token, and which accounts have signed in with this browser.

Failed sign-ins to an account from a browser that knows it are throttled separately. Somebody who guesses passwords
elsewhere does not lock out the person who owns the account.
"""

import secrets

from flask import session

from shared.domain.accounts.passwords import HasPassword, KnownBrowser, account_fingerprint

_KNOWN = "known"
_MAX_KNOWN_ACCOUNTS = 20
_TOKEN = "token"  # noqa: S105  the name of a field
_KEPT_AT_SIGN_IN = ("lang", _KNOWN)


def known_browser() -> KnownBrowser:
    """Return this browser and the accounts it knows."""
    known = session.get(_KNOWN, {})
    return KnownBrowser(known.get("browser", ""), frozenset(known.get("accounts", ())))


def remember_known_account(person: HasPassword) -> None:
    """Mark this browser as one from which this account has signed in. Call it only after its password was right.

    The browser remembers the latest 20 accounts, until their password changes.
    """
    known = session.get(_KNOWN) or {"browser": secrets.token_hex(16), "accounts": []}
    added = account_fingerprint(person)
    others = [account for account in known["accounts"] if account != added]
    session[_KNOWN] = {"browser": known["browser"], "accounts": [added, *others][:_MAX_KNOWN_ACCOUNTS]}


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
