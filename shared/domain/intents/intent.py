"""Payment intents as dataclasses, parsed from rows in PostgreSQL's text format."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from shared.domain.intents.states import IntentStatus
from shared.platform.database.prepared_statements import Row


@dataclass(frozen=True, slots=True)
class NewIntent:
    application_id: UUID
    merchant_reference: str
    amount: int
    currency: str
    description: str | None = None
    customer_external_id: str | None = None
    return_url: str | None = None
    metadata: Mapping[str, str] | None = None
    expires_at: datetime | None = None
    """None means 24 hours after creation."""
    trace: str | None = None
    """The traceparent of the request that creates it, or None without tracing."""


@dataclass(frozen=True, slots=True)
class Intent:
    uuid: UUID
    application_id: UUID
    merchant_reference: str
    reference: str
    amount: int
    currency: str
    status: IntentStatus
    description: str | None
    customer_external_id: str | None
    return_url: str | None
    metadata: dict[str, str] | None
    expires_at: datetime
    created_at: datetime
    updated_at: datetime


INTENT_COLUMNS = """uuid, application_id, merchant_reference, reference, amount, currency, status, description,
    customer_external_id, return_url, metadata, expires_at, created_at, updated_at"""


def parse_intent(row: Row) -> Intent:
    """Parse a row in PostgreSQL's text format, with the columns in the order of INTENT_COLUMNS."""
    uuid, application, merchant_reference, reference, amount, currency, status = map(_required, row[:7])
    expires_at, created_at, updated_at = (datetime.fromisoformat(_required(text)) for text in row[11:])
    return Intent(
        uuid=UUID(uuid),
        application_id=UUID(application),
        merchant_reference=merchant_reference,
        reference=reference,
        amount=int(amount),
        currency=currency,
        status=IntentStatus(status),
        description=_string(row[7]),
        customer_external_id=_string(row[8]),
        return_url=_string(row[9]),
        metadata=None if row[10] is None else json.loads(row[10]),
        expires_at=expires_at,
        created_at=created_at,
        updated_at=updated_at,
    )


def _required(text: bytes | None) -> str:
    assert text is not None
    return text.decode()


def _string(text: bytes | None) -> str | None:
    return None if text is None else text.decode()


# Without 0/o and 1/i/l, which are easily confused.
_ALPHABET = b"23456789abcdefghjkmnpqrstuvwxyz"
_LENGTH = 10
# One call for ten random bytes is ten times as fast as ten calls. 256 is not a multiple of 31, so eight characters
# are slightly more frequent. That does no harm: a reference must be unique, not secret.
_CHARACTER_OF_BYTE = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))


def new_reference() -> str:
    return secrets.token_bytes(_LENGTH).translate(_CHARACTER_OF_BYTE).decode("ascii")
