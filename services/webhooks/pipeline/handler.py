"""A lane of deliveries: look, send many at once, record; done in any order, and nobody waits for a slow endpoint.

The consumer's thread drives the requests. Reading and recording happen in a thread each, so that neither the
database nor Kafka holds up what is in flight.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from services.webhooks.http.client import TryResult, WebhookClient
from services.webhooks.metrics import IN_FLIGHT, WAITING
from services.webhooks.pipeline.application_queues import ApplicationQueues
from services.webhooks.pipeline.batches import BatchStage, LookupQueue, RecordQueue
from services.webhooks.pipeline.lookup import DeliveryLookup, SecretError
from services.webhooks.pipeline.next_action import Drop, NextAction, Send
from services.webhooks.pipeline.recording import Completed, MoveToSlow, RecordAction, Recorder
from services.webhooks.pipeline.tries import (
    TryInProgress,
    TryKey,
    TryMessage,
    end_try_span,
    start_try_span,
    try_key,
)
from shared.domain.messages import DeliveryDue, ResendRequested
from shared.platform.kafka.records import AssignedPartition, Task
from shared.platform.settings import WebhookSettings

MAX_TRIES = 2000
_BATCH = 500
# Who waited in line longer than this is looked at again: a URL may be removed, a pause begin, a secret be rolled.
_LOOK_AGAIN_S = 2.0
_SETTLE_S = 5.0
_SETTLE_RECORDS_S = 4.0

_log = logging.getLogger(__name__)


class UnexpectedDeliveryMessageError(Exception):
    """A record in a webhook topic that asks for no try."""


class DeliveryPipeline:
    """The handler of webhooks.deliver, webhooks.slow and webhooks.resend."""

    def __init__(
        self,
        lane: str,
        looking: DeliveryLookup,
        recording: Recorder,
        sender: WebhookClient[TryInProgress],
        settings: WebhookSettings,
        *,
        has_slow_lane: bool,
    ) -> None:
        self._sender = sender
        self._endpoints: ApplicationQueues[TryInProgress] = ApplicationQueues(
            settings.in_flight, settings.in_flight_per_application, has_slow_lane=has_slow_lane
        )
        self._kept: dict[TryKey, TryInProgress] = {}
        self._to_look = LookupQueue()
        self._to_record = RecordQueue(_BATCH)
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix=lane)
        self._look: BatchStage[TryInProgress, list[tuple[TryInProgress, NextAction | SecretError]]] = (
            BatchStage(
                f"{lane}, looking",
                self._to_look,
                looking.of,
                batch=_BATCH,
                threads=self._threads,
                wake=sender.wake,
            )
        )
        self._record: BatchStage[tuple[TryInProgress, RecordAction], None] = BatchStage(
            f"{lane}, recording",
            self._to_record,
            recording.of,
            batch=_BATCH,
            threads=self._threads,
            wake=sender.wake,
        )
        IN_FLIGHT.labels(lane).set_function(lambda: self._sender.in_flight)
        WAITING.labels(lane).set_function(lambda: self._endpoints.waiting)

    def capacity(self) -> int:
        return max(0, MAX_TRIES - len(self._kept))

    def handle(self, tasks: Sequence[Task]) -> None:
        for task, wanted in [(task, _wanted(task)) for task in tasks]:
            key = try_key(wanted)
            known = self._kept.get(key)
            if known is not None:  # a repeat of what is under way
                known.tasks.append(task)
                known.let_go = False  # its partition has come back
                continue
            one = self._kept[key] = TryInProgress(wanted, key, task)
            self._to_look.add(one)

    def poll(self, wait_s: float) -> bool:
        if self._kept:
            self._go_on(wait_s)
        return bool(self._kept)

    def drain(self, partitions: Sequence[AssignedPartition]) -> None:
        """No new sends for these; what is in flight may finish, and is written down."""
        going = set(partitions)
        self.discard(partitions)
        deadline = monotonic() + _SETTLE_S
        while monotonic() < deadline and any(one.place and one.is_of(going) for one in self._kept.values()):
            self._go_on(0.05)
        for one in self._sender.abandon(lambda one: one.is_of(going)):
            self._forget(one)
        deadline = monotonic() + _SETTLE_RECORDS_S
        while monotonic() < deadline and any(one.is_of(going) for one in self._kept.values()):
            self._go_on(0.01)

    def discard(self, partitions: Sequence[AssignedPartition]) -> None:
        """What is in flight may finish: whoever has the partition now may send it again, but only one is recorded."""
        going = set(partitions)
        for one in self._look.items:
            one.let_go = one.let_go or one.is_of(going)
        for waiting in (self._to_look, self._endpoints):
            for one in waiting.leave(lambda one: one.is_of(going)):
                self._forget(one)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._sender.close()

    def _go_on(self, wait_s: float) -> None:
        self._heed_looks()
        self._look.start()
        now = monotonic()
        for one in self._endpoints.cut_lines(now):
            self._to_record.add(one, MoveToSlow())
        for place, one in self._endpoints.next_to_send(now):
            one.place = place
            if now - one.looked_at > _LOOK_AGAIN_S:
                self._to_look.add(one)
            else:
                self._send(one)
        for one, answer in self._sender.turn(wait_s):
            self._answered(one, answer)
        self._finish_recorded()
        self._record.start()

    def _heed_looks(self) -> None:
        looked = self._look.collect()
        if looked is None:
            return
        tries, judged = looked
        if isinstance(judged, Exception):
            self._give_back(tries, judged)
            return
        for one, verdict in judged:
            self._heed(one, verdict)

    def _heed(self, one: TryInProgress, verdict: NextAction | SecretError) -> None:
        if one.let_go:
            self._forget(one)
        elif isinstance(verdict, Send):
            one.looked_at = monotonic()
            if one.place:  # it has been in line, and was looked at again
                self._send(one)
            else:
                self._endpoints.join(one.application_id, one)
        elif isinstance(verdict, Drop):
            if verdict.why:
                _log.warning("delivery %s is not resent: %s", one.delivery_id, verdict.why)
            self._forget(one)
            one.done()
        elif isinstance(verdict, Exception):
            self._give_back([one], verdict)
        else:
            self._leave_place(one)
            self._to_record.add(one, verdict)

    def _send(self, one: TryInProgress) -> None:
        assert one.post is not None
        one.span = start_try_span(one)
        self._sender.start(one, one.post, one.span.trace if one.span is not None else one.trace)

    def _answered(self, one: TryInProgress, answer: TryResult) -> None:
        self._endpoints.ended(one.application_id, one.place, answer.duration_ms / 1000)
        one.place = 0
        if one.span is not None:
            end_try_span(one, answer)
        self._to_record.add(one, Completed(answer))

    def _finish_recorded(self) -> None:
        recorded = self._record.collect()
        if recorded is None:
            return
        results, error = recorded
        if isinstance(error, Exception):
            self._give_back([one for one, _ in results], error)
            return
        for one, _ in results:
            self._forget(one)
            one.done()

    def _give_back(self, tries: Sequence[TryInProgress], error: Exception) -> None:
        for one in tries:
            self._forget(one)
            for task in one.tasks:
                task.requeue(error)

    def _forget(self, one: TryInProgress) -> None:
        self._leave_place(one)
        if one.span is not None:
            end_try_span(one, None)
        if self._kept.get(one.key) is one:
            del self._kept[one.key]

    def _leave_place(self, one: TryInProgress) -> None:
        if one.place:
            self._endpoints.ended(one.application_id, one.place, None)
            one.place = 0


def _wanted(task: Task) -> TryMessage:
    message = task.message
    if not isinstance(message, DeliveryDue | ResendRequested):
        raise UnexpectedDeliveryMessageError(f"{type(message).__name__} asks for no try")
    return message
