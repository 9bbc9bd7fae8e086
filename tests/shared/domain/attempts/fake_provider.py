"""A fake provider in memory with a ledger. It can be slow, silent or late, and it answers inquiries."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from shared.domain.attempts.provider_exchange import AttemptOutcome, ProviderRequest
from shared.domain.attempts.states import IN_FLIGHT_WINDOW, ProviderAnswer


@dataclass
class LedgerEntry:
    """The provider's record of an attempt."""

    intent: UUID
    answer: ProviderAnswer
    said_declined: bool = False


@dataclass(frozen=True)
class InFlightRequest:
    """A request that timed out for the caller and may still arrive."""

    request: ProviderRequest
    intent: UUID
    sent_at: datetime
    answer: ProviderAnswer


@dataclass
class FakeProvider:
    ledger: dict[UUID, LedgerEntry] = field(default_factory=dict)
    in_flight: list[InFlightRequest] = field(default_factory=list)

    def process(self, attempt: UUID, intent: UUID, answer: ProviderAnswer) -> AttemptOutcome:
        """The attempt's id is the idempotency key: one that is paid is not charged again."""
        known = self.ledger.get(attempt)
        if known is None or known.answer is not ProviderAnswer.PAID:
            said_declined = answer is ProviderAnswer.DECLINED or (known is not None and known.said_declined)
            self.ledger[attempt] = LedgerEntry(intent, answer, said_declined)
        return self.status(attempt)

    def status(self, attempt: UUID) -> AttemptOutcome:
        known = self.ledger.get(attempt)
        return AttemptOutcome(known.answer if known else ProviderAnswer.NOT_FOUND)

    def lose(self, request: InFlightRequest) -> None:
        self.in_flight.append(request)

    def arrive(self, request: InFlightRequest, now: datetime) -> None:
        """Process the request, unless the in-flight window is over."""
        self.in_flight.remove(request)
        if now < request.sent_at + IN_FLIGHT_WINDOW:
            self.process(request.request.attempt, request.intent, request.answer)

    def pay_late(self, attempt: UUID) -> None:
        """Turn a declined charge into a paid one."""
        self.ledger[attempt].answer = ProviderAnswer.PAID

    def can_still_charge(self, intent: UUID, but: UUID, now: datetime) -> set[UUID]:
        """Return other attempts of this intent that are paid or in flight and were not reported as declined."""
        paid = {
            attempt
            for attempt, entry in self.ledger.items()
            if entry.intent == intent and entry.answer is ProviderAnswer.PAID and not entry.said_declined
        }
        coming = {
            request.request.attempt
            for request in self.in_flight
            if request.intent == intent and now < request.sent_at + IN_FLIGHT_WINDOW
        }
        return (paid | coming) - {but}
