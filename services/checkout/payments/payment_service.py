"""What customers do: pay, enter a code, have it sent again.

Each is begun and committed before the provider is called, and settled in a transaction of its own afterwards: what
happens in between, a crash included, leaves an attempt that others ask the provider about.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from services.checkout.metrics import ATTEMPTS_STARTED, count_settled
from services.checkout.payments.checkout_state import CheckoutState, LastAttempt
from services.checkout.payments.limits import LimitExceededError, PaymentLimits, Refusal
from services.checkout.payments.one_time_codes import CodeChallenges, enforce_try_limit
from services.checkout.payments.settlement import SettlementSideEffects
from services.checkout.providers.interface import (
    Card,
    FailureReason,
    PaymentRequest,
    ProviderResponse,
    SubmittedCode,
    Wallet,
)
from services.checkout.providers.registry import ConfiguredProvider, ProviderRegistry
from shared.domain.attempts.provider_exchange import AttemptOutcome, ProviderRequest, SettlementResult
from shared.domain.attempts.settlement import lock_attempt, settle_response
from shared.domain.attempts.start import repeat_start, start_attempt, submit_code
from shared.domain.attempts.states import ProviderAnswer, UnexpectedAnswerError
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database, DatabaseUnavailableError

_log = logging.getLogger(__name__)

_SETTLING_S = 25.0
_NOT_SENT_AGAIN = (FailureReason.PROVIDER_AWAY, FailureReason.WAIT_BEFORE_NEXT_CODE)


class CodeNotSentError(Exception):
    """The provider did not send the code again; the one sent before may still arrive."""


@dataclass(frozen=True, slots=True)
class PaymentService:
    database: Database
    providers: ProviderRegistry
    codes: CodeChallenges
    limits: PaymentLimits

    def pay(
        self,
        checkout: CheckoutState,
        method: PaymentMethod,
        account: ConfiguredProvider,
        details: Card | Wallet | None,
        *,
        lang: str,
        leave_redirect: bool = False,
    ) -> SettlementResult:
        """Raises AttemptRefusedError or TooMuchError, and has done nothing then."""
        provider = account.provider
        wallet = details if isinstance(details, Wallet) else None
        with self.database.transaction() as connection:
            request = start_attempt(
                connection,
                checkout.intent,
                method,
                provider.name,
                provider.initial_state(method),
                account=account.id,
                leave_redirect=leave_redirect,
            )
            self.limits.count_attempt(connection, checkout.intent)
            if wallet is not None:
                self.limits.count_code_sent(connection, checkout.intent, wallet.phone)
        ATTEMPTS_STARTED.labels(method, provider.name).inc()
        answer = provider.start(_payment(checkout, request, method, lang), details)

        def settle(connection: Connection[Any]) -> SettlementResult:
            settled = _settle_response(connection, request, answer.outcome)
            self._side_effects.record_side_effects(connection, request.attempt, settled, answer, wallet)
            if wallet is not None and answer.outcome.reason == FailureReason.PROVIDER_AWAY:
                self.limits.refund_code(connection, checkout.intent, wallet.phone)
            return settled

        return count_settled(self._settle(request, answer, settle), method, provider.name)

    def confirm(
        self, checkout: CheckoutState, attempt: LastAttempt, code: str, *, lang: str
    ) -> SettlementResult:
        """Raises AttemptRefusedError or CodeRefusedError, and has done nothing then."""
        with self.database.transaction() as connection:
            request = submit_code(connection, attempt.id)
            challenge = self.codes.count_try(connection, attempt.id)
            account = self.providers.for_attempt(connection.cursor(), attempt.account)
        entered = SubmittedCode(code, challenge.continuation, request.number)
        said_so = account.provider.confirm(_payment(checkout, request, attempt.method, lang), entered)
        answer = enforce_try_limit(said_so, challenge)

        def settle(connection: Connection[Any]) -> SettlementResult:
            settled = _settle_response(connection, request, answer.outcome)
            self._side_effects.record_side_effects(connection, request.attempt, settled, answer)
            if answer.outcome.reason == FailureReason.PROVIDER_AWAY:
                self.codes.refund_try(connection, request.attempt)
            elif said_so.outcome.reason == FailureReason.WRONG_CODE:
                self._count_wrong_code(connection, request.attempt)
            return settled

        return count_settled(self._settle(request, answer, settle), attempt.method, account.provider.name)

    def resend_code(self, checkout: CheckoutState, attempt: LastAttempt, *, lang: str) -> SettlementResult:
        """Raises AttemptRefusedError, TooMuchError or CodeNotSentError."""
        with self.database.transaction() as connection:
            request = repeat_start(connection, attempt.id)
            wallet = self.codes.claim_resend(connection, attempt.id)
            if wallet is None:
                raise LimitExceededError(Refusal.SEND_AGAIN_TOO_SOON)
            self.limits.count_code_sent(connection, checkout.intent, wallet.phone)
            account = self.providers.for_attempt(connection.cursor(), attempt.account)
        answer = account.provider.start(_payment(checkout, request, attempt.method, lang), wallet)
        if answer.outcome.reason in _NOT_SENT_AGAIN:
            with self.database.transaction() as connection:
                lock_attempt(connection, attempt.id)
                self.codes.release_resend(connection, attempt.id)
                self.limits.refund_code(connection, checkout.intent, wallet.phone)
            raise CodeNotSentError

        def settle(connection: Connection[Any]) -> SettlementResult:
            settled = _settle_response(connection, request, answer.outcome)
            if answer.outcome.answer is ProviderAnswer.NEEDS_CODE:
                self.codes.record_resent(connection, attempt.id, answer.continuation)
            return settled

        return count_settled(self._settle(request, answer, settle), attempt.method, account.provider.name)

    @property
    def _side_effects(self) -> SettlementSideEffects:
        return SettlementSideEffects(self.codes, self.limits)

    def _count_wrong_code(self, connection: Connection[Any], attempt: UUID) -> None:
        phone = self.codes.find_phone(connection, attempt)
        if phone is not None:
            self.limits.count_wrong_code(connection, phone)

    def _settle(
        self,
        request: ProviderRequest,
        answer: ProviderResponse,
        settle: Callable[[Connection[Any]], SettlementResult],
    ) -> SettlementResult:
        """What a provider has said exists nowhere else: a database that is away for a moment must not lose it."""
        keep_trying = Retrying(
            retry=retry_if_exception_type(DatabaseUnavailableError),
            wait=wait_exponential(0.2, max=3),
            stop=stop_after_delay(_SETTLING_S),
            reraise=True,
        )

        def settle_once() -> SettlementResult:
            with self.database.transaction() as connection:
                return settle(connection)

        try:
            return keep_trying(settle_once)
        except Exception:
            outcome = answer.outcome
            _log.error(
                "attempt %s could not be settled; its provider said %s (%s), reference %s",
                request.attempt,
                outcome.answer,
                outcome.reason,
                outcome.provider_reference,
            )
            raise


def _settle_response(
    connection: Connection[Any], request: ProviderRequest, outcome: AttemptOutcome
) -> SettlementResult:
    try:
        return settle_response(connection, request, outcome)
    except UnexpectedAnswerError as error:
        # Whatever it meant: somebody has to ask again.
        _log.error("attempt %s: %s", request.attempt, error)
        return settle_response(connection, request, AttemptOutcome(ProviderAnswer.UNKNOWN))


def _payment(
    checkout: CheckoutState, request: ProviderRequest, method: PaymentMethod, lang: str
) -> PaymentRequest:
    return PaymentRequest(
        request.attempt,
        checkout.intent,
        method,
        checkout.amount,
        checkout.currency,
        lang,
        request.is_past_deadline,
    )
