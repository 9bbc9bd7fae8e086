"""A charge as the ledger knows it, and as it is told."""

from dataclasses import dataclass
from datetime import UTC, datetime

from services.sandbox.scripts import Reason, Script, Standing, Status
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
    script: Script
    status: Status
    reason: Reason | None
    created_at: str
    updated_at: str

    @property
    def standing(self) -> Standing:
        return Standing(self.status, self.reason)

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


def now() -> str:
    """As the ledger and all answers spell it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
