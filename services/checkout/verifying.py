"""The verifier: asks providers what became of the attempts that are put on checkout.verify, and settles them."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import Counter

from services.checkout.accounts import Accounts, AccountUnusableError
from services.checkout.codes import within_tries
from services.checkout.following import Following
from services.checkout.metrics import count_settled
from services.checkout.news import Known, known_attempt
from services.checkout.providers.port import Payment, ProviderAnswer, said
from shared.domain.attempts.provider_exchange import Question
from shared.domain.attempts.settlement import settle_asked
from shared.domain.attempts.states import Answer, AnswerOutOfPlaceError
from shared.domain.messages import VerificationDue
from shared.platform.database.pool import Database
from shared.platform.kafka.records import Record, Task
from shared.platform.kafka.spans import trace_current_record
from shared.platform.logs import log_context
from shared.platform.tracing.traceparent import trace_id_of
from shared.platform.web.languages import DEFAULT

ASKED = Counter(
    "mizan_status_inquiries", "Status inquiries sent to providers, by outcome", ["provider", "outcome"]
)

AT_ONCE = 16

_log = logging.getLogger(__name__)


class Verifier:
    """Several providers are asked at once, so that a slow one holds up few."""

    def __init__(self, database: Database, accounts: Accounts, following: Following) -> None:
        self._database = database
        self._accounts = accounts
        self._following = following
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="asking")

    def verify(self, tasks: Sequence[Task]) -> None:
        """For a BatchHandler; raises what the first of them raised."""
        asked = [(_question(task), task.record) for task in tasks]
        for done in [self._pool.submit(self._verify_traced, *one) for one in asked]:
            done.result()

    def close(self) -> None:
        self._pool.shutdown()

    def _verify_traced(self, question: Question, record: Record) -> None:
        if record.trace is None:
            self._verify(question)
        else:
            with log_context(trace_id=trace_id_of(record.trace)), trace_current_record(record):
                self._verify(question)

    def _verify(self, question: Question) -> None:
        with self._database.cursor() as cursor:
            known = known_attempt(cursor, question.attempt)
        if known is None:
            return
        with log_context(attempt=str(known.attempt)):
            answer = self._asked(known)
            self._settle(question, known, answer)
        ASKED.labels(known.provider, answer.outcome.answer).inc()

    def _asked(self, known: Known) -> ProviderAnswer:
        payment = Payment(
            known.attempt, known.intent, known.method, known.amount, known.currency, DEFAULT, lambda: False
        )
        try:
            with self._database.cursor() as cursor:
                account = self._accounts.of_attempt(cursor, known.account)
        except AccountUnusableError as error:
            _log.error("nobody can be asked: %s", error)
            return said(Answer.UNKNOWN)
        return account.provider.status(payment)

    def _settle(self, question: Question, known: Known, answer: ProviderAnswer) -> None:
        with self._database.transaction() as connection:
            answer = within_tries(answer, self._following.codes.find(connection, known.attempt))
            try:
                settled = settle_asked(connection, question, answer.outcome)
            except AnswerOutOfPlaceError as error:
                _log.error("%s says something senseless: %s", known.provider, error)
                return
            self._following.keep(connection, known.attempt, settled, answer)
        count_settled(settled, known.method, known.provider)
        _log.info("%s says %s: now %s", known.provider, answer.outcome.answer, settled.attempt)


def _question(task: Task) -> Question:
    message = task.message
    if not isinstance(message, VerificationDue):
        raise TypeError(f"{type(message).__name__} does not belong on this topic")
    return Question(message.attempt_id, message.number, message.surely_arrived)
