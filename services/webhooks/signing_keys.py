"""The keys that sign requests: webhook secrets, opened once."""

import hmac
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.applications.webhook_secrets import open_webhook_secret
from shared.domain.deliveries.signing import signing_key
from shared.platform.encryption import SecretBox

_MOST_KEPT = 10_000


class SigningKeys:
    """Kept in memory: a version of a secret never changes."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box
        self._keys: dict[tuple[str, int], hmac.HMAC] = {}

    def get(self, connection: Connection[Any], application_id: str, version: int) -> hmac.HMAC:
        key = self._keys.get((application_id, version))
        if key is None:
            secret = open_webhook_secret(connection, self._box, UUID(application_id), version)
            if len(self._keys) >= _MOST_KEPT:
                self._keys.clear()
            key = self._keys[application_id, version] = signing_key(secret.text)
        return key
