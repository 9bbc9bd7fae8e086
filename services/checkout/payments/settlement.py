"""What every settlement of an attempt needs: the attempt's context before it, and its side effects after it."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from services.checkout.payments.limits import PaymentLimits
from services.checkout.payments.one_time_codes import CodeChallenges
from services.checkout.providers.interface import ProviderResponse, Wallet
from shared.domain.applications.provider_accounts import ProviderName
from shared.domain.attempts.provider_exchange import SettlementResult
from shared.domain.attempts.states import CHARGED, AttemptState, ProviderAnswer
from shared.domain.payment_methods import PaymentMethod

_INSERT_PAGE = """
insert into provider_pages (attempt_id, url) values (%s, %s) on conflict (attempt_id) do nothing"""


@dataclass(frozen=True, slots=True)
class SettlementSideEffects:
    """Writes that follow from settling an attempt: a code challenge, the provider's page, deleted phone numbers."""

    codes: CodeChallenges
    limits: PaymentLimits

    def of(self, context: "AttemptContext") -> "SettlementSideEffects":
        """Return those of an attempt: one at the sandbox has the limits of its test application."""
        if context.provider != ProviderName.SANDBOX:
            return self
        return replace(self, limits=self.limits.within_test_application(context.application))

    def record_side_effects(
        self,
        connection: Connection[Any],
        attempt: UUID,
        settled: SettlementResult,
        response: ProviderResponse,
        wallet: Wallet | None = None,
    ) -> None:
        """Record what follows from the new state. Call it in the transaction that settled the attempt."""
        if (
            settled.attempt is AttemptState.AWAITING_CODE
            and response.outcome.answer is ProviderAnswer.NEEDS_CODE
        ):
            self.codes.open(connection, attempt, response.continuation, wallet)
        elif settled.attempt is AttemptState.AWAITING_REDIRECT and response.redirect_url is not None:
            connection.execute(_INSERT_PAGE, (attempt, response.redirect_url))
        elif settled.attempt in CHARGED:
            phone = self.codes.forget_phone(connection, attempt)
            if phone is not None:
                self.limits.forget_phone(connection, phone)


_FIND_CONTEXT = """
select t.id, t.intent_uuid, t.method, t.provider, t.provider_account_id,
       case when not t.reference_from_operator then t.provider_reference end, i.application_id, i.amount, i.currency,
       i.trace
from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
where t.id = %s"""


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """An attempt with what a notification or a status inquiry is checked against."""

    attempt: UUID
    intent: UUID
    method: PaymentMethod
    provider: str
    account: UUID | None
    reference: str | None
    """The reference that the provider supplied, if it has."""
    application: UUID
    amount: int
    currency: str
    trace: str | None = None
    """The traceparent of the request that created the intent."""


def find_attempt_context(cursor: Cursor[Any], attempt: UUID) -> AttemptContext | None:
    row = cursor.execute(_FIND_CONTEXT, (attempt,)).fetchone()
    if row is None:
        return None
    id_, intent, method, *rest = row
    return AttemptContext(id_, intent, PaymentMethod(method), *rest)
