"""What the browser of who is signed in holds, in a cookie that nobody can forge."""

from flask import session

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
