"""The short reference of an intent: what a customer reads out to a merchant over the phone."""

import secrets

# No 0/o, 1/i/l: nobody should have to ask which one it is.
_ALPHABET = b"23456789abcdefghjkmnpqrstuvwxyz"
_LENGTH = 10
# One draw of random bytes is ten times as fast as ten. 256 is no multiple of 31, so eight of the characters
# come a little more often, which does no harm: a reference must be unique, not secret.
_CHARACTER_OF_BYTE = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))


def new_reference() -> str:
    return secrets.token_bytes(_LENGTH).translate(_CHARACTER_OF_BYTE).decode("ascii")
