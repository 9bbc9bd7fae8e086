"""Payments of customers: start one, confirm it with a code, resend the code.

Each step is committed before the provider is called and settled in a second transaction afterwards. After a crash in
between, the verifier asks the provider for the outcome of the attempt.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from services.checkout.metrics import ATTEMPTS_STARTED, count_settled
from services.checkout.payments.checkout_state import CheckoutState, LastAttempt
from services.checkout.payments.limits import LimitExceededError, PaymentLimits, Refusal
from services.checkout.payments.one_time_codes import (
    RESEND_AFTER_S,
    CodeChallenges,
    enforce_try_limit,
    number_wrong_code,
)
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
from shared.domain.applications.modes import ApplicationMode
from shared.domain.attempts.provider_exchange import AttemptOutcome, ProviderRequest, SettlementResult
from shared.domain.attempts.settlement import lock_attempt, settle_response
from shared.domain.attempts.start import repeat_start, start_attempt, submit_code
from shared.domain.attempts.states import CHARGED, ProviderAnswer, UnexpectedAnswerError
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database, DatabaseUnavailableError

_log = logging.getLogger(__name__)

_SETTLE_RETRY_S = 25.0
_NOT_RESENT_REASONS = (FailureReason.PROVIDER_AWAY, FailureReason.WAIT_BEFORE_NEXT_CODE)


class CodeNotSentError(Exception):
    """The provider did not resend the code. The earlier code may still arrive."""


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
        client: str,
        leave_redirect: bool = False,
    ) -> SettlementResult:
        """Start an attempt with the method's provider and settle the response. `client` is the customer's address.

        Raises AttemptRefusedError or LimitExceededError before anything is done.
        """
        limits = self._limits_of(checkout)
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
            limits.count_attempt(connection, checkout.intent)
            limits.check_address(connection, client)
            if wallet is not None:
                limits.count_code_sent(connection, checkout.intent, wallet.phone)
                limits.count_failure(connection, client)
        ATTEMPTS_STARTED.labels(method, provider.name).inc()
        response = provider.start(_payment(checkout, request, method, lang), details)

        def settle(connection: Connection[Any]) -> SettlementResult:
            settled = _settle_response(connection, request, response.outcome)
            self._side_effects(limits).record_side_effects(
                connection, request.attempt, settled, response, wallet
            )
            if wallet is None and _is_failure_or_code(response.outcome):
                limits.count_failure(connection, client)
            elif wallet is not None and response.outcome.reason == FailureReason.PROVIDER_AWAY:
                limits.refund_code(connection, checkout.intent, wallet.phone)
                limits.refund_failure(connection, client)
            return settled

        return count_settled(self._settle(request, response, settle), method, provider.name)

    def confirm(
        self, checkout: CheckoutState, attempt: LastAttempt, code: str, *, lang: str, client: str
    ) -> SettlementResult:
        """Confirm the attempt with a code and settle the response.

        Raises AttemptRefusedError, CodeRefusedError or LimitExceededError before anything is done.
        """
        limits = self._limits_of(checkout)
        with self.database.transaction() as connection:
            request = submit_code(connection, attempt.id)
            challenge = self.codes.count_try(connection, attempt.id)
            limits.check_address(connection, client)
            phone = self.codes.find_phone(connection, attempt.id)
            if phone is not None:
                limits.count_code_tried(connection, phone)
            account = self.providers.for_attempt(connection.cursor(), attempt.account)
        entered = SubmittedCode(code, challenge.continuation, request.number)
        raw_response = account.provider.confirm(_payment(checkout, request, attempt.method, lang), entered)
        response = enforce_try_limit(number_wrong_code(raw_response, challenge), challenge)

        def settle(connection: Connection[Any]) -> SettlementResult:
            settled = _settle_response(connection, request, response.outcome)
            self._side_effects(limits).record_side_effects(connection, request.attempt, settled, response)
            if response.outcome.reason == FailureReason.PROVIDER_AWAY:
                self.codes.refund_try(connection, request.attempt)
            if phone is not None and not _may_be_wrong(raw_response.outcome):
                limits.refund_code_tried(connection, phone)
            if settled.attempt in CHARGED:
                limits.refund_failure(connection, client)  # the code was sent to pay
            elif _is_failure_or_code(raw_response.outcome):
                limits.count_failure(connection, client)
            return settled

        return count_settled(self._settle(request, response, settle), attempt.method, account.provider.name)

    def resend_code(
        self, checkout: CheckoutState, attempt: LastAttempt, *, lang: str, client: str
    ) -> SettlementResult:
        """Ask the provider to send the code again.

        Raises AttemptRefusedError, LimitExceededError or CodeNotSentError.
        """
        limits = self._limits_of(checkout)
        with self.database.transaction() as connection:
            request = repeat_start(connection, attempt.id)
            account = self.providers.for_attempt(connection.cursor(), attempt.account)
            claimed = self.codes.claim_resend(connection, attempt.id)
            if claimed is None:
                raise LimitExceededError(Refusal.SEND_AGAIN_TOO_SOON, RESEND_AFTER_S)
            if not can_resend(account, attempt):
                raise CodeNotSentError
            phone = None if claimed.wallet is None else claimed.wallet.phone
            limits.check_address(connection, client)
            limits.count_code_sent(connection, checkout.intent, phone)
            limits.count_failure(connection, client)
        response = account.provider.resend_code(
            _payment(checkout, request, attempt.method, lang), claimed.continuation, claimed.wallet
        )
        if response.outcome.reason in _NOT_RESENT_REASONS:
            with self.database.transaction() as connection:
                lock_attempt(connection, attempt.id)
                self.codes.release_resend(connection, attempt.id)
                limits.refund_code(connection, checkout.intent, phone)
                limits.refund_failure(connection, client)
            raise CodeNotSentError

        def settle(connection: Connection[Any]) -> SettlementResult:
            settled = _settle_response(connection, request, response.outcome)
            if response.outcome.answer is ProviderAnswer.NEEDS_CODE:
                self.codes.record_resent(connection, attempt.id, response.continuation)
            return settled

        return count_settled(self._settle(request, response, settle), attempt.method, account.provider.name)

    def _limits_of(self, checkout: CheckoutState) -> PaymentLimits:
        if checkout.mode is ApplicationMode.TEST:
            return self.limits.within_test_application(checkout.application)
        return self.limits

    def _side_effects(self, limits: PaymentLimits) -> SettlementSideEffects:
        return SettlementSideEffects(self.codes, limits)

    def _settle(
        self,
        request: ProviderRequest,
        response: ProviderResponse,
        settle: Callable[[Connection[Any]], SettlementResult],
    ) -> SettlementResult:
        """Settle with retries: a response exists nowhere else, so a short outage of the database must not lose it."""
        retrying = Retrying(
            retry=retry_if_exception_type(DatabaseUnavailableError),
            wait=wait_exponential(0.2, max=3),
            stop=stop_after_delay(_SETTLE_RETRY_S),
            reraise=True,
        )

        def settle_once() -> SettlementResult:
            with self.database.transaction() as connection:
                return settle(connection)

        try:
            return retrying(settle_once)
        except Exception:
            outcome = response.outcome
            _log.error(
                "attempt %s could not be settled; the provider answered %s (%s), reference %s",
                request.attempt,
                outcome.answer,
                outcome.reason,
                outcome.provider_reference,
            )
            raise


def can_resend(account: ConfiguredProvider, attempt: LastAttempt) -> bool:
    """Return whether the code of this attempt can be sent again: a wallet's only while its phone is stored."""
    if attempt.challenge is None or not account.provider.can_resend_code(attempt.method):
        return False
    return attempt.challenge.has_phone or attempt.method is PaymentMethod.CARD


def _is_failure_or_code(outcome: AttemptOutcome) -> bool:
    """Return whether the attempt or code was refused, or a code was sent. An outage is not the client's failure."""
    answers = (ProviderAnswer.DECLINED, ProviderAnswer.NEEDS_CODE)
    return outcome.answer in answers and outcome.reason != FailureReason.PROVIDER_AWAY


def _may_be_wrong(outcome: AttemptOutcome) -> bool:
    """Return whether the code that was sent may have been a wrong guess."""
    return outcome.answer is ProviderAnswer.UNKNOWN or outcome.reason == FailureReason.WRONG_CODE


def _settle_response(
    connection: Connection[Any], request: ProviderRequest, outcome: AttemptOutcome
) -> SettlementResult:
    try:
        return settle_response(connection, request, outcome)
    except UnexpectedAnswerError as error:
        # Whatever the provider meant, the verifier has to ask again.
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
