"""What customers do: pay, enter a code, have it sent again.

Each is begun and committed before the provider is called, and settled in a transaction of its own afterwards: what
happens in between, a crash included, leaves an attempt that others ask the provider about.
"""

import logging
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.checkout.accounts import Account, Accounts
from services.checkout.codes import Challenge, Codes
from services.checkout.following import Following
from services.checkout.limits import Limits, TooMuchError
from services.checkout.providers.port import (
    Card,
    CodeEntered,
    Payment,
    ProviderAnswer,
    Reason,
    Wallet,
    said,
)
from services.checkout.sentences import Refusal
from services.checkout.visit import LastAttempt, Visit
from shared.attempts.beginning import begin, repeat_start, send
from shared.attempts.outcome import Outcome, Sending, Settled
from shared.attempts.settling import settle_answered
from shared.attempts.states import Answer, AnswerOutOfPlaceError, AttemptState
from shared.db.pool import Database
from shared.payment_method import PaymentMethod

_log = logging.getLogger(__name__)

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
        payment = _payment(visit, sending.attempt, method, lang)
        answer = said(Answer.UNKNOWN) if sending.is_too_late() else provider.start(payment, details)
        return self._settle(sending, answer, wallet)

    def confirm(self, visit: Visit, attempt: LastAttempt, code: str, *, lang: str) -> Settled:
        """Raises AttemptRefusedError or CodeRefusedError, and has done nothing then."""
        with self.database.transaction() as connection:
            sending = send(connection, attempt.id)
            challenge = self.codes.count_try(connection, attempt.id)
            account = self.accounts.of_attempt(connection.cursor(), attempt.account)
        payment = _payment(visit, attempt.id, attempt.method, lang)
        entered = CodeEntered(code, challenge.continuation, sending.number)
        answer = said(Answer.UNKNOWN) if sending.is_too_late() else account.provider.confirm(payment, entered)
        if answer.outcome.answer is Answer.NEEDS_CODE and answer.outcome.reason == Reason.PROVIDER_AWAY:
            return self._settle_not_sent(sending, answer)
        return self._settle(sending, _within_tries(answer, challenge))

    def send_again(self, visit: Visit, attempt: LastAttempt, *, lang: str) -> Settled:
        """Raises AttemptRefusedError, TooMuchError or CodeNotSentError."""
        with self.database.transaction() as connection:
            sending = repeat_start(connection, attempt.id)
            wallet = self.codes.claim_sending(connection, attempt.id)
            if wallet is None:
                raise TooMuchError(Refusal.SEND_AGAIN_TOO_SOON)
            self.limits.count_code_sent(connection, visit.intent, wallet.phone)
            account = self.accounts.of_attempt(connection.cursor(), attempt.account)
        answer = account.provider.start(_payment(visit, attempt.id, attempt.method, lang), wallet)
        if answer.outcome.reason in _NOT_SENT_AGAIN:
            raise CodeNotSentError
        with self.database.transaction() as connection:
            settled = _taken_in(connection, sending, answer.outcome)
            if settled.attempt is AttemptState.AWAITING_CODE:
                self.codes.sent_again(connection, attempt.id, answer.continuation)
        return settled

    def _settle(self, sending: Sending, answer: ProviderAnswer, wallet: Wallet | None = None) -> Settled:
        with self.database.transaction() as connection:
            settled = _taken_in(connection, sending, answer.outcome)
            Following(self.codes, self.limits).keep(connection, sending.attempt, settled, answer, wallet)
        return settled

    def _settle_not_sent(self, sending: Sending, answer: ProviderAnswer) -> Settled:
        """The code never reached the provider, so it does not count."""
        with self.database.transaction() as connection:
            settled = _taken_in(connection, sending, answer.outcome)
            self.codes.give_back_try(connection, sending.attempt)
        return settled


def _taken_in(connection: Connection[Any], sending: Sending, outcome: Outcome) -> Settled:
    try:
        return settle_answered(connection, sending, outcome)
    except AnswerOutOfPlaceError as error:
        # Whatever it meant: somebody has to ask again.
        _log.error("attempt %s: %s", sending.attempt, error)
        return settle_answered(connection, sending, Outcome(Answer.UNKNOWN))


def _within_tries(answer: ProviderAnswer, challenge: Challenge) -> ProviderAnswer:
    """The fifth wrong code ends the attempt."""
    if answer.outcome.answer is not Answer.NEEDS_CODE or challenge.tries_left > 0:
        return answer
    return replace(answer, outcome=Outcome(Answer.DECLINED, Reason.TOO_MANY_CODES))


def _payment(visit: Visit, attempt: UUID, method: PaymentMethod, lang: str) -> Payment:
    return Payment(attempt, visit.intent, method, visit.amount, visit.currency, lang)
