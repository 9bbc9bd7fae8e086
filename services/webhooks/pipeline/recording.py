"""Records a batch of tries: writes them to the database, then publishes what follows from them.

Only when Kafka has confirmed that are the records of the batch done.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time
from uuid import UUID

from services.webhooks.http.client import TryResult
from services.webhooks.metrics import (
    BLOCKED,
    DELIVERED,
    EVENT_TO_RECEIPT,
    FAILED,
    MOVED_TO_SLOW,
    RETRIED,
    SET_ASIDE,
    TRIES,
)
from services.webhooks.outgoing import publish, to_dead, to_delay, to_deliver, to_requeue, to_slow
from services.webhooks.pipeline.next_action import (
    FailWithoutUrl,
    NextAction,
    PublishExhausted,
    Requeue,
    SetAside,
    decide,
)
from services.webhooks.pipeline.queries import (
    ResendTry,
    ScheduledTry,
    fail_without_url,
    fetch_deliveries,
    record_resends,
    record_tries,
    set_aside,
)
from services.webhooks.pipeline.tries import TryInProgress
from services.webhooks.retry_schedule import DeliveryStatus, RetryDecision, decide_after_try
from shared.domain.deliveries.try_results import NO_URL, TryFailure
from shared.domain.messages import DeliveryDue, DeliveryExhausted, ResendRequested
from shared.platform.database.pool import Database
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord
from shared.platform.uuids import uuid7_timestamp


@dataclass(frozen=True, slots=True)
class Completed:
    """The request was sent and has ended: record its result."""

    result: TryResult


@dataclass(frozen=True, slots=True)
class MoveToSlow:
    """The queue of its application is too long: publish the try to the slow pipeline."""


@dataclass(frozen=True, slots=True)
class MoveToDeliver:
    """Intake cannot make this first try soon: publish it to the pipeline of later tries."""


RecordAction = Completed | MoveToSlow | MoveToDeliver | Requeue | PublishExhausted | FailWithoutUrl | SetAside


class Recorder:
    """The last stage of the pipeline."""

    def __init__(
        self, database: Database, producer: ConfirmingProducer, retry_delays: tuple[float, ...]
    ) -> None:
        self._database = database
        self._producer = producer
        self._retry_delays = retry_delays

    def prepare(self, actions: Sequence[tuple[TryInProgress, RecordAction]]) -> Callable[[], None]:
        """Return the recording of one batch, with at most one try of each delivery.

        It may be repeated after it raised, also in another batch or by another process: what was written but not
        published is published then.
        """
        outgoing: list[OutgoingRecord] | None = None

        def record() -> None:
            nonlocal outgoing
            if outgoing is None:
                outgoing = list(_write(self._database, actions, self._retry_delays))
            if outgoing:
                publish(self._producer, outgoing)

        return record


def _write(
    database: Database, actions: Sequence[tuple[TryInProgress, RecordAction]], retry_delays: tuple[float, ...]
) -> Iterable[OutgoingRecord]:
    """Write the batch to the database and yield the records to publish."""
    completed = [(one, action.result) for one, action in actions if isinstance(action, Completed)]
    scheduled = {
        one.delivery_id: (one, _scheduled_try(one, one.message, result, retry_delays))
        for one, result in completed
        if isinstance(one.message, DeliveryDue)
    }
    resends = [
        _resend_try(one, result) for one, result in completed if isinstance(one.message, ResendRequested)
    ]
    without_url = {one.delivery_id for one, action in actions if isinstance(action, FailWithoutUrl)}
    paused = {one.delivery_id for one, action in actions if isinstance(action, SetAside)}
    advanced: dict[str, datetime | None] = {}
    with database.cursor() as cursor:
        if scheduled:
            advanced = record_tries(cursor, [made for _, made in scheduled.values()])
        if resends:
            record_resends(cursor, resends)
        if without_url:
            FAILED.labels(NO_URL).inc(fail_without_url(cursor, without_url))
        if paused:
            SET_ASIDE.inc(set_aside(cursor, paused))
        # Tries that were recorded before, by a process that may have died before it published what follows.
        known = (
            fetch_deliveries(cursor, scheduled.keys() - advanced.keys())
            if len(advanced) < len(scheduled)
            else {}
        )
    for delivery_id, due_at in advanced.items():
        one, made = scheduled[delivery_id]
        yield from _after_try(one, made.decision, due_at)
    for delivery_id, delivery in known.items():
        one, _ = scheduled[delivery_id]
        one.delivery = delivery
        assert isinstance(one.message, DeliveryDue)
        yield from _after_action(one, decide(one.message, delivery), retry_delays)
    for one, action in actions:
        yield from _after_action(one, action, retry_delays)
    _count(advanced, [made for _, made in scheduled.values()], resends)


def _after_try(
    one: TryInProgress, decision: RetryDecision, due_at: datetime | None
) -> Iterable[OutgoingRecord]:
    if decision.status is DeliveryStatus.FAILED:
        yield _exhausted(one)
    elif due_at is not None:
        yield to_delay(
            DeliveryDue(UUID(one.delivery_id), one.message.application_id, decision.next_step, due_at),
            one.trace,
        )


def _after_action(
    one: TryInProgress, action: RecordAction | NextAction, retry_delays: tuple[float, ...]
) -> Iterable[OutgoingRecord]:
    delivery = one.delivery
    if isinstance(action, MoveToSlow):
        MOVED_TO_SLOW.inc()
        yield to_slow(one.message, one.trace)
    elif isinstance(action, MoveToDeliver) and isinstance(one.message, DeliveryDue):
        yield to_deliver(one.message, one.trace)
    elif isinstance(action, PublishExhausted):
        yield _exhausted(one)
    elif isinstance(action, Requeue) and delivery is not None and delivery.next_due_at is not None:
        due = DeliveryDue(UUID(delivery.id), one.message.application_id, delivery.step, delivery.next_due_at)
        yield to_requeue(due, delivery.due_in_s, retry_delays, one.trace)


def _exhausted(one: TryInProgress) -> OutgoingRecord:
    exhausted = DeliveryExhausted(UUID(one.delivery_id), one.message.application_id, datetime.now(UTC))
    return to_dead(exhausted, one.trace)


def _scheduled_try(
    one: TryInProgress, due: DeliveryDue, result: TryResult, retry_delays: tuple[float, ...]
) -> ScheduledTry:
    decision = decide_after_try(due.step, is_success=result.is_success, retry_delays=retry_delays)
    return ScheduledTry(one.delivery_id, due.step, result, _age_ms(result), decision)


def _resend_try(one: TryInProgress, result: TryResult) -> ResendTry:
    assert one.request is not None
    return ResendTry(one.delivery_id, str(one.message.id), result, _age_ms(result), one.request.url)


def _age_ms(result: TryResult) -> int:
    return max(0, int((time() - result.began_at) * 1000))


def _count(advanced: Iterable[str], scheduled: Sequence[ScheduledTry], resends: Sequence[ResendTry]) -> None:
    counted = Counter((str(made.step), _outcome_label(made.result)) for made in scheduled)
    counted.update(("resend", _outcome_label(resend.result)) for resend in resends)
    for labels, count in counted.items():
        TRIES.labels(*labels).inc(count)
        if labels[1] == TryFailure.BLOCKED_ADDRESS:
            BLOCKED.inc(count)
    recorded = set(advanced)
    decisions = Counter(
        (made.decision.status, made.step) for made in scheduled if made.delivery_id in recorded
    )
    for (status, step), count in decisions.items():
        if status is DeliveryStatus.PENDING:
            RETRIED.labels(str(step)).inc(count)
        elif status is DeliveryStatus.FAILED:
            FAILED.labels("tries").inc(count)
        else:
            DELIVERED.inc(count)
    for made in scheduled:
        if made.step == 1 and made.result.is_success and made.delivery_id in recorded:
            received_at = made.result.began_at + made.result.duration_ms / 1000
            EVENT_TO_RECEIPT.observe(received_at - uuid7_timestamp(made.delivery_id))  # its id is the event's


def _outcome_label(result: TryResult) -> str:
    if result.failure is not None:
        return result.failure
    assert result.status_code is not None
    return f"{result.status_code // 100}xx"
