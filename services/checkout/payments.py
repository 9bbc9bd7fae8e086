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

from services.checkout.accounts import Account, Accounts
from services.checkout.codes import Codes, within_tries
from services.checkout.following import Following
from services.checkout.limits import Limits, TooMuchError
from services.checkout.metrics import BEGUN, count_settled
from services.checkout.providers.port import (
    Card,
    CodeEntered,
    Payment,
    ProviderAnswer,
    Reason,
    Wallet,
)
from services.checkout.sentences import Refusal
from services.checkout.visit import LastAttempt, Visit
from shared.domain.attempts.provider_exchange import Outcome, Sending, Settled
from shared.domain.attempts.settlement import lock_attempt, settle_answered
from shared.domain.attempts.start import begin, repeat_start, send
from shared.domain.attempts.states import Answer, AnswerOutOfPlaceError
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database, DatabaseUnavailableError

_log = logging.getLogger(__name__)

_SETTLING_S = 25.0
_NOT_SENT_AGAIN = (Reason.PROVIDER_AWAY, Reason.WAIT_BEFORE_NEXT_CODE)


class CodeNotSentError(Exception):
    """The provider did not send the code again; the one sent before may still arrive."""


@dataclass(frozen=True, slots=True)
class Payments:
    database: Database
    accounts: Accounts
    codes: Codes
    limits: Limits

    def pay(
        self,
        visit: Visit,
        method: PaymentMethod,
        account: Account,
        details: Card | Wallet | None,
        *,
        lang: str,
        leave_redirect: bool = False,
    ) -> Settled:
        """Raises AttemptRefusedError or TooMuchError, and has done nothing then."""
        provider = account.provider
        wallet = details if isinstance(details, Wallet) else None
        with self.database.transaction() as connection:
            sending = begin(
                connection,
                visit.intent,
                method,
                provider.name,
                provider.beginning(method),
                account=account.id,
                leave_redirect=leave_redirect,
            )
            self.limits.count_attempt(connection, visit.intent)
            if wallet is not None:
                self.limits.count_code_sent(connection, visit.intent, wallet.phone)
        BEGUN.labels(method, provider.name).inc()
        answer = provider.start(_payment(visit, sending, method, lang), details)

        def settle(connection: Connection[Any]) -> Settled:
            settled = _taken_in(connection, sending, answer.outcome)
            self._following.keep(connection, sending.attempt, settled, answer, wallet)
            if wallet is not None and answer.outcome.reason == Reason.PROVIDER_AWAY:
                self.limits.give_back_code(connection, visit.intent, wallet.phone)
            return settled

        return count_settled(self._settle(sending, answer, settle), method, provider.name)

    def confirm(self, visit: Visit, attempt: LastAttempt, code: str, *, lang: str) -> Settled:
        """Raises AttemptRefusedError or CodeRefusedError, and has done nothing then."""
        with self.database.transaction() as connection:
            sending = send(connection, attempt.id)
            challenge = self.codes.count_try(connection, attempt.id)
            account = self.accounts.of_attempt(connection.cursor(), attempt.account)
        entered = CodeEntered(code, challenge.continuation, sending.number)
        said_so = account.provider.confirm(_payment(visit, sending, attempt.method, lang), entered)
        answer = within_tries(said_so, challenge)

        def settle(connection: Connection[Any]) -> Settled:
            settled = _taken_in(connection, sending, answer.outcome)
            self._following.keep(connection, sending.attempt, settled, answer)
            if answer.outcome.reason == Reason.PROVIDER_AWAY:
                self.codes.give_back_try(connection, sending.attempt)
            elif said_so.outcome.reason == Reason.WRONG_CODE:
                self._count_wrong_code(connection, sending.attempt)
            return settled

        return count_settled(self._settle(sending, answer, settle), attempt.method, account.provider.name)

    def send_again(self, visit: Visit, attempt: LastAttempt, *, lang: str) -> Settled:
        """Raises AttemptRefusedError, TooMuchError or CodeNotSentError."""
        with self.database.transaction() as connection:
            sending = repeat_start(connection, attempt.id)
            wallet = self.codes.claim_sending(connection, attempt.id)
            if wallet is None:
                raise TooMuchError(Refusal.SEND_AGAIN_TOO_SOON)
            self.limits.count_code_sent(connection, visit.intent, wallet.phone)
            account = self.accounts.of_attempt(connection.cursor(), attempt.account)
        answer = account.provider.start(_payment(visit, sending, attempt.method, lang), wallet)
        if answer.outcome.reason in _NOT_SENT_AGAIN:
            with self.database.transaction() as connection:
                lock_attempt(connection, attempt.id)
                self.codes.give_back_sending(connection, attempt.id)
                self.limits.give_back_code(connection, visit.intent, wallet.phone)
            raise CodeNotSentError

        def settle(connection: Connection[Any]) -> Settled:
            settled = _taken_in(connection, sending, answer.outcome)
            if answer.outcome.answer is Answer.NEEDS_CODE:
                self.codes.sent_again(connection, attempt.id, answer.continuation)
            return settled

        return count_settled(self._settle(sending, answer, settle), attempt.method, account.provider.name)

    @property
    def _following(self) -> Following:
        return Following(self.codes, self.limits)

    def _count_wrong_code(self, connection: Connection[Any], attempt: UUID) -> None:
        phone = self.codes.phone(connection, attempt)
        if phone is not None:
            self.limits.count_wrong_code(connection, phone)

    def _settle(
        self, sending: Sending, answer: ProviderAnswer, settle: Callable[[Connection[Any]], Settled]
    ) -> Settled:
        """What a provider has said exists nowhere else: a database that is away for a moment must not lose it."""
        keep_trying = Retrying(
            retry=retry_if_exception_type(DatabaseUnavailableError),
            wait=wait_exponential(0.2, max=3),
            stop=stop_after_delay(_SETTLING_S),
            reraise=True,
        )

        def settle_once() -> Settled:
            with self.database.transaction() as connection:
                return settle(connection)

        try:
            return keep_trying(settle_once)
        except Exception:
            outcome = answer.outcome
            _log.error(
                "attempt %s could not be settled; its provider said %s (%s), reference %s",
                sending.attempt,
                outcome.answer,
                outcome.reason,
                outcome.provider_reference,
            )
            raise


def _taken_in(connection: Connection[Any], sending: Sending, outcome: Outcome) -> Settled:
    try:
        return settle_answered(connection, sending, outcome)
    except AnswerOutOfPlaceError as error:
        # Whatever it meant: somebody has to ask again.
        _log.error("attempt %s: %s", sending.attempt, error)
        return settle_answered(connection, sending, Outcome(Answer.UNKNOWN))


def _payment(visit: Visit, sending: Sending, method: PaymentMethod, lang: str) -> Payment:
    return Payment(
        sending.attempt, visit.intent, method, visit.amount, visit.currency, lang, sending.is_too_late
    )
