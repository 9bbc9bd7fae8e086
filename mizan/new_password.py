"""A password for somebody else, shown once."""

import secrets

NOTE = "The password is shown once: hand it over in a safe way. It can be changed after signing in."


def new_password() -> str:
    return secrets.token_urlsafe(15)
