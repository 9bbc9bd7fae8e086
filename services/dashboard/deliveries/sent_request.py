"""The request of a delivery with its signatures, for developers to compare with their own (§6.3, §6.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from psycopg import Connection

from services.dashboard.deliveries.queries import Delivery, DeliveryTry, list_secret_versions
from shared.domain.applications.errors import WebhookSecretNotFoundError
from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.domain.deliveries.signing import (
    CONTENT_TYPE,
    SIGNATURE_HEADER,
    USER_AGENT,
    build_body,
    sign_body,
    signing_key,
)
from shared.platform.encryption import DecryptionError, KeysUnavailableError, SecretBox, WrongPurposeError

_PYTHON = """\
import hashlib
import hmac
import os

secret = os.environ["WEBHOOK_SECRET"].encode()  # all of it, with whsec_
body = request.get_data()  # the raw bytes, before anything parses them
expected = hmac.new(secret, body, hashlib.sha256).hexdigest()
is_genuine = hmac.compare_digest(expected, request.headers["{header}"])"""


@dataclass(frozen=True, slots=True)
class Signature:
    version: int
    since: datetime
    tries: Sequence[int]
    """The numbers of the tries that were signed with it."""
    text: str | None
    """None if the secret cannot be decrypted, or not now."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    url: str
    headers: Sequence[tuple[str, str]]
    body: str
    signatures: Sequence[Signature]

    @property
    def openssl(self) -> str:
        return f"printf '%s' '{self.body}' | openssl dgst -sha256 -hmac \"$WEBHOOK_SECRET\""

    @property
    def python(self) -> str:
        return _PYTHON.format(header=SIGNATURE_HEADER)


def describe_request(
    connection: Connection[Any],
    box: SecretBox,
    application_id: UUID,
    delivery: Delivery,
    tries: Sequence[DeliveryTry],
) -> SentRequest:
    """Describe the request of the latest try, or before the first try the request that will be sent."""
    body = build_body(str(delivery.id), delivery.event, str(delivery.intent_uuid))
    latest = tries[0] if tries else None
    version = latest.secret_version if latest else delivery.secret_version
    versions = {version, *(one.secret_version for one in tries)}
    signatures = [
        Signature(
            found.version,
            found.created_at,
            sorted(one.number for one in tries if one.secret_version == found.version),
            _sign(connection, box, application_id, found.version, body),
        )
        for found in list_secret_versions(connection, application_id, sorted(versions))
    ]
    current = next((one.text for one in signatures if one.version == version), None)
    url = latest.url if latest else delivery.url
    return SentRequest(url, _headers(url, body, current), body.decode(), signatures)


def _sign(
    connection: Connection[Any], box: SecretBox, application_id: UUID, version: int, body: bytes
) -> str | None:
    try:
        secret = decrypt_webhook_secret(connection, box, application_id, version)
    except (WebhookSecretNotFoundError, DecryptionError, KeysUnavailableError, WrongPurposeError):
        return None
    return sign_body(body, signing_key(secret.text))


def _headers(url: str, body: bytes, signature: str | None) -> list[tuple[str, str]]:
    """Return the headers in the order in which they are sent."""
    return [
        ("Host", urlsplit(url).netloc),
        ("User-Agent", USER_AGENT),
        ("Accept", "*/*"),
        ("Content-Type", CONTENT_TYPE),
        (SIGNATURE_HEADER, signature or "…"),
        ("Content-Length", str(len(body))),
    ]
