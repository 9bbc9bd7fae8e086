"""After sending: the tries of a batch are written down, what follows from them is put into Kafka, and only then are
their records done."""

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
    FAILED,
    OVERFLOWED,
    PARKED,
    RETRIED,
    TO_RECEIPT,
    TRIES,
)
from services.webhooks.outgoing import publish, to_dead, to_delay, to_requeue, to_slow
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
from shared.platform.uuids import made_at


@dataclass(frozen=True, slots=True)
class Completed:
    """It was sent, and this came of it."""

    answer: TryResult


@dataclass(frozen=True, slots=True)
class MoveToSlow:
    """It goes to the slow lane."""


RecordAction = Completed | MoveToSlow | Requeue | PublishExhausted | FailWithoutUrl | SetAside


class Recorder:
    """The books of a lane: the database, and Kafka for what follows."""

    def __init__(
        self, database: Database, producer: ConfirmingProducer, retry_delays: tuple[float, ...]
    ) -> None:
        self._database = database
        self._producer = producer
        self._retry_delays = retry_delays

    def of(self, results: Sequence[tuple[TryInProgress, RecordAction]]) -> Callable[[], None]:
        """Records one batch, with at most one try of each delivery. When it raises it can be called again, also by
        another batch or process: what was written and not told is told then."""
        outgoing: list[OutgoingRecord] | None = None

        def record() -> None:
            nonlocal outgoing
            if outgoing is None:
                outgoing = list(_write(self._database, results, self._retry_delays))
            if outgoing:
                publish(self._producer, outgoing)

        return record


def _write(
    database: Database, results: Sequence[tuple[TryInProgress, RecordAction]], retry_delays: tuple[float, ...]
) -> Iterable[OutgoingRecord]:
    """Returns what is to be put into Kafka."""
    answered = [(one, result.answer) for one, result in results if isinstance(result, Completed)]
    ladder = {
        one.delivery_id: (one, _ladder_try(one, one.wanted, answer, retry_delays))
        for one, answer in answered
        if isinstance(one.wanted, DeliveryDue)
    }
    resends = [
        _resend_try(one, answer) for one, answer in answered if isinstance(one.wanted, ResendRequested)
    ]
    ending = [one.delivery_id for one, result in results if isinstance(result, FailWithoutUrl)]
    parking = [one.delivery_id for one, result in results if isinstance(result, SetAside)]
    advanced: dict[str, datetime | None] = {}
    with database.cursor() as cursor:
        if ladder:
            advanced = record_tries(cursor, [made for _, made in ladder.values()])
        if resends:
            record_resends(cursor, resends)
        if ending:
            FAILED.labels(NO_URL).inc(fail_without_url(cursor, ending))
        if parking:
            PARKED.inc(set_aside(cursor, parking))
        # Written before, by this process or another, which may have died, or not have heard of it.
        known = (
            fetch_deliveries(cursor, ladder.keys() - advanced.keys()) if len(advanced) < len(ladder) else {}
        )
    for delivery_id, due_at in advanced.items():
        one, made = ladder[delivery_id]
        yield from _what_follows(one, made.decision, due_at)
    for delivery_id, delivery in known.items():
        one, _ = ladder[delivery_id]
        one.delivery = delivery
        assert isinstance(one.wanted, DeliveryDue)
        yield from _what_is_told(one, decide(one.wanted, delivery), retry_delays)
    for one, result in results:
        yield from _what_is_told(one, result, retry_delays)
    _count(advanced, [made for _, made in ladder.values()], resends)


def _what_follows(
    one: TryInProgress, decision: RetryDecision, due_at: datetime | None
) -> Iterable[OutgoingRecord]:
    if decision.status is DeliveryStatus.FAILED:
        yield _dead(one)
    elif due_at is not None:
        yield to_delay(
            DeliveryDue(UUID(one.delivery_id), one.wanted.application_id, decision.next_step, due_at),
            one.trace,
        )


def _what_is_told(
    one: TryInProgress, result: RecordAction | NextAction, retry_delays: tuple[float, ...]
) -> Iterable[OutgoingRecord]:
    delivery = one.delivery
    if isinstance(result, MoveToSlow):
        OVERFLOWED.inc()
        yield to_slow(one.wanted, one.trace)
    elif isinstance(result, PublishExhausted):
        yield _dead(one)
    elif isinstance(result, Requeue) and delivery is not None and delivery.next_due_at is not None:
        due = DeliveryDue(UUID(delivery.id), one.wanted.application_id, delivery.step, delivery.next_due_at)
        yield to_requeue(due, delivery.due_in_s, retry_delays, one.trace)


def _dead(one: TryInProgress) -> OutgoingRecord:
    exhausted = DeliveryExhausted(UUID(one.delivery_id), one.wanted.application_id, datetime.now(UTC))
    return to_dead(exhausted, one.trace)


def _ladder_try(
    one: TryInProgress, due: DeliveryDue, answer: TryResult, retry_delays: tuple[float, ...]
) -> ScheduledTry:
    decision = decide_after_try(due.step, is_success=answer.is_success, retry_delays=retry_delays)
    return ScheduledTry(one.delivery_id, due.step, answer, _age_ms(answer), decision)


def _resend_try(one: TryInProgress, answer: TryResult) -> ResendTry:
    assert one.post is not None
    return ResendTry(one.delivery_id, str(one.wanted.id), answer, _age_ms(answer), one.post.url)


def _age_ms(answer: TryResult) -> int:
    return max(0, int((time() - answer.began_at) * 1000))


def _count(advanced: Iterable[str], ladder: Sequence[ScheduledTry], resends: Sequence[ResendTry]) -> None:
    counted = Counter((str(made.step), _outcome(made.answer)) for made in ladder)
    counted.update(("resend", _outcome(resend.answer)) for resend in resends)
    for labels, times in counted.items():
        TRIES.labels(*labels).inc(times)
        if labels[1] == TryFailure.BLOCKED_ADDRESS:
            BLOCKED.inc(times)
    moved_on = set(advanced)
    moves = Counter((made.decision.status, made.step) for made in ladder if made.delivery_id in moved_on)
    for (status, step), times in moves.items():
        if status is DeliveryStatus.PENDING:
            RETRIED.labels(str(step)).inc(times)
        elif status is DeliveryStatus.FAILED:
            FAILED.labels("tries").inc(times)
        else:
            DELIVERED.inc(times)
    for made in ladder:
        if made.step == 1 and made.answer.is_success and made.delivery_id in moved_on:
            received_at = made.answer.began_at + made.answer.duration_ms / 1000
            TO_RECEIPT.observe(received_at - made_at(made.delivery_id))  # its id is the event's


def _outcome(answer: TryResult) -> str:
    if answer.failure is not None:
        return answer.failure
    assert answer.status_code is not None
    return f"{answer.status_code // 100}xx"
