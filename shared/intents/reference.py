"""The short reference of an intent: what a customer reads out to a merchant over the phone."""

import secrets

# No 0/o, 1/i/l: nobody should have to ask which one it is.
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_LENGTH = 10


def new_reference() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
