"""Whether a webhook is Mizan's: its signature, and the secrets that are accepted (§6.4, §6.6)."""

import hashlib
import hmac
import sqlite3

_OLD_ONES_FOR_S = 2 * 86_400.0
"""Retries that were queued before a roll carry the old secret, and go on for about a day (§6.6)."""


def signature_of(secret: str, body: bytes) -> str:
    """Lower-case hex HMAC-SHA256 of the raw body, keyed with the whole secret, `whsec_` included (§6.4)."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(body: bytes, signature: str, secrets: list[str]) -> bool:
    """Over the bytes as they came, before anything reads them, and in constant time (§6.5, 1)."""
    given = signature.encode()
    # Every secret is tried: how long it takes says nothing about which one fits.
    fits = [hmac.compare_digest(signature_of(secret, body).encode(), given) for secret in secrets]
    return any(fits)


def add_secret(connection: sqlite3.Connection, secret: str, at: float) -> None:
    connection.execute("insert into webhook_secrets values (?, ?) on conflict do nothing", (secret, at))


def accepted_secrets(connection: sqlite3.Connection, now: float) -> list[str]:
    """The newest, and for two days after a roll the one before."""
    rows = connection.execute("select secret, since from webhook_secrets order by since, rowid").fetchall()
    followed = zip(rows, [*rows[1:], None], strict=True)
    return [
        row["secret"] for row, next_ in followed if next_ is None or next_["since"] > now - _OLD_ONES_FOR_S
    ]
