"""What is kept beside an attempt once it is settled, whoever brought the news: a challenge, a page, no phone."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from services.checkout.payments.limits import PaymentLimits
from services.checkout.payments.one_time_codes import CodeChallenges
from services.checkout.providers.interface import ProviderResponse, Wallet
from shared.domain.attempts.provider_exchange import SettlementResult
from shared.domain.attempts.states import CHARGED, AttemptState, ProviderAnswer
from shared.domain.payment_methods import PaymentMethod

_KEEP_PAGE = """
insert into provider_pages (attempt_id, url) values (%s, %s) on conflict (attempt_id) do nothing"""


@dataclass(frozen=True, slots=True)
class SettlementSideEffects:
    codes: CodeChallenges
    limits: PaymentLimits

    def record_side_effects(
        self,
        connection: Connection[Any],
        attempt: UUID,
        settled: SettlementResult,
        answer: ProviderResponse,
        wallet: Wallet | None = None,
    ) -> None:
        """In the transaction that settled it."""
        if (
            settled.attempt is AttemptState.AWAITING_CODE
            and answer.outcome.answer is ProviderAnswer.NEEDS_CODE
        ):
            self.codes.open(connection, attempt, answer.continuation, wallet)
        elif settled.attempt is AttemptState.AWAITING_REDIRECT and answer.redirect_url is not None:
            connection.execute(_KEEP_PAGE, (attempt, answer.redirect_url))
        elif settled.attempt in CHARGED:
            phone = self.codes.forget_phone(connection, attempt)
            if phone is not None:
                self.limits.forget_phone(connection, phone)


_KNOWN = """
select t.id, t.intent_uuid, t.method, t.provider, t.provider_account_id, t.provider_reference, i.amount, i.currency,
       i.trace
from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
where t.id = %s"""


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What we know of an attempt that somebody speaks of."""

    attempt: UUID
    intent: UUID
    method: PaymentMethod
    provider: str
    account: UUID | None
    reference: str | None
    """The provider's own name for it, if it has told us."""
    amount: int
    currency: str
    trace: str | None = None
    """The traceparent that its intent was made under."""


def find_attempt_context(cursor: Cursor[Any], attempt: UUID) -> AttemptContext | None:
    row = cursor.execute(_KNOWN, (attempt,)).fetchone()
    if row is None:
        return None
    id_, intent, method, *rest = row
    return AttemptContext(id_, intent, PaymentMethod(method), *rest)
