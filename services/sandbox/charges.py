"""Charges and their notifications, as stored in the ledger and returned by the API."""

import hmac
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self
from uuid import uuid4

from services.sandbox.scripted_outcomes import ChargeResult, ChargeStatus, DeclineReason, ScriptedOutcome
from shared.domain.payment_methods import PaymentMethod


@dataclass(frozen=True, slots=True)
class Charge:
    id: str
    attempt: str
    intent: str
    method: PaymentMethod
    amount: int
    currency: str
    notify_url: str
    script: ScriptedOutcome
    status: ChargeStatus
    reason: DeclineReason | None
    created_at: str
    updated_at: str

    @property
    def result(self) -> ChargeResult:
        return ChargeResult(self.status, self.reason)

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "attempt": self.attempt,
            "intent": self.intent,
            "amount": self.amount,
            "currency": self.currency,
            "method": self.method,
            "status": self.status,
            "reason": self.reason,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }


def current_timestamp() -> str:
    """Return the current time in the format of the ledger and the API."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


SIGNATURE_HEADER = "Sandbox-Signature"


@dataclass(frozen=True, slots=True)
class ChargeNotification:
    """A notification that a charge was settled. Every try sends the same bytes."""

    id: str
    charge: str
    url: str
    body: str

    @classmethod
    def of(cls, charge: Charge, at: str) -> Self:
        notification_id = str(uuid4())
        content = {
            "id": notification_id,
            "charge": charge.id,
            "attempt": charge.attempt,
            "intent": charge.intent,
            "amount": charge.amount,
            "currency": charge.currency,
            "status": charge.status,
            "at": at,
        }
        return cls(notification_id, charge.id, charge.notify_url, json.dumps(content))


def sign(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, "sha256").hexdigest()
