"""The verifier: sends status inquiries for the attempts on checkout.verify and settles the answers."""

import logging
from uuid import UUID

from prometheus_client import Counter

from services.checkout.metrics import count_settled
from services.checkout.payments.one_time_codes import enforce_try_limit
from services.checkout.payments.settlement import (
    AttemptContext,
    SettlementSideEffects,
    find_attempt_context,
)
from services.checkout.providers.interface import PaymentRequest, ProviderResponse, build_response
from services.checkout.providers.registry import ProviderNotConfiguredError, ProviderRegistry
from shared.domain.attempts.provider_exchange import SettlementResult, StatusInquiry
from shared.domain.attempts.settlement import lock_attempt, make_inquiry, settle_inquiry
from shared.domain.attempts.states import ProviderAnswer, UnexpectedAnswerError
from shared.domain.attempts.status_inquiries import OpenInquiries, find_open_inquiries, record_answer
from shared.domain.dead_letters.producer import KafkaDeadLetterProducer
from shared.domain.messages import VerificationDue, decode
from shared.domain.topics import CHECKOUT_VERIFY
from shared.platform.database.pool import Database
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.handlers import ThreadPoolHandler
from shared.platform.kafka.records import Task
from shared.platform.kafka.spans import trace_current_record
from shared.platform.logs import log_context
from shared.platform.settings import Settings
from shared.platform.tracing.traceparent import trace_id_of
from shared.platform.web.languages import DEFAULT

STATUS_INQUIRIES = Counter(
    "mizan_status_inquiries", "Status inquiries sent to providers, by outcome", ["provider", "outcome"]
)

MAX_CONCURRENT_INQUIRIES = 16

_log = logging.getLogger(__name__)


class UnexpectedVerificationMessageError(Exception):
    """A record on checkout.verify has a message that names no attempt to verify."""


class Verifier:
    """Asks the provider of one attempt at a time; called from several threads at once.

    A record only says which attempt to look at. What was sent, and when, is read from the database.
    """

    def __init__(
        self, database: Database, providers: ProviderRegistry, side_effects: SettlementSideEffects
    ) -> None:
        self._database = database
        self._providers = providers
        self._side_effects = side_effects

    def handle(self, task: Task) -> None:
        """Verify the attempt that a record names. Raises UnexpectedVerificationMessageError if it names none."""
        message, record = task.message, task.record
        if not isinstance(message, VerificationDue):
            raise UnexpectedVerificationMessageError(f"{type(message).__name__} names no attempt to verify")
        if record.trace is None:
            self.verify(message.attempt_id)
        else:
            with log_context(trace_id=trace_id_of(record.trace)), trace_current_record(record):
                self.verify(message.attempt_id)

    def verify(self, attempt: UUID) -> None:
        """Ask the provider, settle its answer, and record it for the operators who asked before."""
        with self._database.cursor() as cursor:
            inquiry, context = make_inquiry(cursor, attempt), find_attempt_context(cursor, attempt)
            asked = find_open_inquiries(cursor, attempt)
        if inquiry is None or context is None:
            return
        with log_context(attempt=str(context.attempt)):
            response = self._inquire(context)
            self._settle(inquiry, context, response, asked)
        STATUS_INQUIRIES.labels(context.provider, response.outcome.answer).inc()

    def _inquire(self, context: AttemptContext) -> ProviderResponse:
        payment = PaymentRequest(
            context.attempt,
            context.intent,
            context.method,
            context.amount,
            context.currency,
            DEFAULT,
            lambda: False,
        )
        try:
            with self._database.cursor() as cursor:
                account = self._providers.for_attempt(cursor, context.account)
        except ProviderNotConfiguredError as error:
            _log.error("the provider cannot be asked: %s", error)
            return build_response(ProviderAnswer.UNKNOWN)
        return account.provider.status(payment)

    def _settle(
        self,
        inquiry: StatusInquiry,
        context: AttemptContext,
        response: ProviderResponse,
        asked: OpenInquiries | None,
    ) -> None:
        with self._database.transaction() as connection:
            limited = enforce_try_limit(response, self._side_effects.codes.find(connection, context.attempt))
            before = lock_attempt(connection, context.attempt).snapshot
            settled: SettlementResult | None = None
            try:
                settled = settle_inquiry(connection, inquiry, limited.outcome)
                self._side_effects.of(context).record_side_effects(
                    connection, context.attempt, settled, limited
                )
            except UnexpectedAnswerError as error:
                _log.error("unexpected answer of %s: %s", context.provider, error)
            if asked is not None:
                after = before.state if settled is None else settled.attempt
                record_answer(connection, asked, response.outcome, before, after)
        if settled is None:
            return
        count_settled(settled, context.method, context.provider)
        _log.info(
            "%s answered %s: the attempt is now %s",
            context.provider,
            limited.outcome.answer,
            settled.attempt,
        )


def verifier_loop(settings: Settings, handler: ThreadPoolHandler) -> ConsumerLoop:
    assert CHECKOUT_VERIFY.group is not None
    dead_letters = KafkaDeadLetterProducer(settings.kafka)
    return ConsumerLoop(
        settings.kafka, CHECKOUT_VERIFY.group, [CHECKOUT_VERIFY.name], handler, dead_letters, decode=decode
    )
