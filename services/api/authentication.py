"""Authenticates calls by both credentials of §5, which are looked up by hash and cached for 3 seconds.

The order of the checks: the API key, then the token, then that both belong to one application.
"""

import re
from hmac import compare_digest
from threading import Lock
from time import monotonic
from typing import Any
from uuid import UUID

from psycopg import Cursor

from shared.platform.database.pool import Database
from shared.platform.tokens import hash_token

CACHED_S = 3.0
"""A revoked key or token must stop working within 5 seconds, in every process."""
_MAX_CACHED = 10_000
_BEARER = re.compile(r"bearer +([^\s]+) *", re.IGNORECASE)

_FIND = """
select kind, hash, application_id,
       coalesce(last_used_at < mizan_now() - interval '1 minute', true) as should_record_use
from credentials where hash in (%s, %s) and revoked_at is null"""

# It never waits for a lock: recording the use must not delay a payment.
_RECORD_USE = """
update credentials set last_used_at = mizan_now()
where id in (select id from credentials where hash in (%s, %s) for no key update skip locked)"""


class ApiKeyRefusedError(Exception):
    """Missing or unknown API key."""


class TokenRefusedError(Exception):
    """Missing or invalid access token."""


class Authentication:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: dict[tuple[bytes, bytes], tuple[UUID, float]] = {}
        self._lock = Lock()

    def authenticate(self, api_key: str | None, authorization: str | None) -> UUID:
        """Return the application of both credentials; raises ApiKeyRefusedError or TokenRefusedError."""
        if not api_key:
            raise ApiKeyRefusedError("The X-API-Key header is missing.")
        bearer = _BEARER.fullmatch(authorization or "")
        pair = hash_token(api_key), hash_token(bearer[1] if bearer else "")
        cached = self._cache.get(pair)
        if cached and monotonic() < cached[1]:
            return cached[0]
        looked_up_at = monotonic()
        with self._database.cursor() as cursor:
            application_id = _find_application(cursor, *pair, has_token=bearer is not None)
        self._add_to_cache(pair, application_id, looked_up_at + CACHED_S)
        return application_id

    def _add_to_cache(self, pair: tuple[bytes, bytes], application_id: UUID, until: float) -> None:
        with self._lock:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[pair] = application_id, until


def _find_application(cursor: Cursor[Any], key_hash: bytes, token_hash: bytes, *, has_token: bool) -> UUID:
    rows = cursor.execute(_FIND, (key_hash, token_hash)).fetchall()
    key = _matching(rows, "api_key", key_hash)
    if key is None:
        raise ApiKeyRefusedError("The API key is unknown or revoked.")
    if not has_token:
        raise TokenRefusedError(
            "The Authorization header is missing; send: Authorization: Bearer <access token>."
        )
    token = _matching(rows, "access_token", token_hash)
    if token is None or token[2] != key[2]:
        raise TokenRefusedError("The access token is invalid or revoked, or belongs to another application.")
    if key[3] or token[3]:
        cursor.execute(_RECORD_USE, (key_hash, token_hash))
    application_id: UUID = key[2]
    return application_id


def _matching(rows: list[Any], kind: str, wanted: bytes) -> Any | None:
    """Compare once more in constant time. The index look-up is by hash, so its time tells nothing of the credential."""
    return next((row for row in rows if row[0] == kind and compare_digest(row[1], wanted)), None)
