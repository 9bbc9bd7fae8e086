"""The signed word that a charge was settled: the same bytes each time it is sent."""

import hmac
import json
from dataclasses import dataclass
from typing import Self
from uuid import uuid4

from services.sandbox.charge import Charge

SIGNATURE_HEADER = "Sandbox-Signature"


@dataclass(frozen=True, slots=True)
class Notification:
    id: str
    charge: str
    url: str
    body: str

    @classmethod
    def of(cls, charge: Charge, at: str) -> Self:
        notification_id = str(uuid4())
        told = {
            "id": notification_id,
            "charge": charge.id,
            "attempt": charge.attempt,
            "intent": charge.intent,
            "amount": charge.amount,
            "currency": charge.currency,
            "status": charge.status,
            "at": at,
        }
        return cls(notification_id, charge.id, charge.notify_url, json.dumps(told))


def signature_of(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, "sha256").hexdigest()
