"""The delivery pipeline: looks up deliveries, sends many requests at once, records the results.

The pipeline of intake reads events, and creates their deliveries when it looks them up. The others read records that
ask for one more try of a delivery.

Tries finish in any order, and none waits for another application's slow endpoint. The consumer's thread drives the
requests. Look-up and recording run in a thread each, so neither the database nor Kafka delays requests in flight.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import monotonic

from services.webhooks.http.client import TryResult, WebhookClient
from services.webhooks.metrics import IN_FLIGHT, WAITING
from services.webhooks.pipeline.application_queues import ApplicationQueues
from services.webhooks.pipeline.batches import BatchStage, LookupQueue, RecordQueue
from services.webhooks.pipeline.lookup import DeliveryLookup, SecretError
from services.webhooks.pipeline.next_action import Drop, NextAction, Reject, Send
from services.webhooks.pipeline.recording import (
    Completed,
    MoveToDeliver,
    MoveToSlow,
    RecordAction,
    Recorder,
)
from services.webhooks.pipeline.tries import (
    TryInProgress,
    TryKey,
    TryMessage,
    end_try_span,
    start_try_span,
)
from shared.domain.deliveries.try_results import EVENTS, PROXY_FAILURES
from shared.domain.messages import DeliveryDue, IntentEvent, ResendRequested
from shared.platform.encryption import KeysUnavailableError
from shared.platform.kafka.records import AssignedPartition, Task
from shared.platform.settings import WebhookSettings

_MAX_TRIES = 6000
"""Enough for a burst of one application, so that tries of others are read meanwhile."""
_MAX_SLOW_TRIES = 2000
_BATCH = 500
# A try that was queued for longer is looked up again: its URL may be gone, its application paused, its secret rolled.
_LOOKUP_VALID_S = 2.0
# While the KMS is away, tries whose key is not in memory wait here, and the others go on. If more than this wait, the
# consumer pauses, as in any other outage.
_MAX_WITHOUT_KEY = _MAX_SLOW_TRIES // 2
_KEY_RETRY_S = 2.0
_RECORDING_POLL_S = 0.005
_DRAIN_S = 5.0
_DRAIN_RECORDS_S = 4.0

_log = logging.getLogger(__name__)


class DeliveryPipeline:
    """The handler of payment_intents.events, webhooks.deliver, webhooks.slow and webhooks.resend."""

    def __init__(
        self,
        name: str,
        lookup: DeliveryLookup,
        recorder: Recorder,
        client: WebhookClient[TryInProgress],
        settings: WebhookSettings,
        *,
        reads_events: bool = False,
        has_slow_pipeline: bool,
    ) -> None:
        self._reads_events = reads_events
        self._client = client
        self._recorder = recorder
        self._max_tries = _MAX_TRIES if has_slow_pipeline else _MAX_SLOW_TRIES
        self._queues: ApplicationQueues[TryInProgress] = ApplicationQueues(
            settings.in_flight, settings.in_flight_per_application, has_slow_pipeline=has_slow_pipeline
        )
        self._tries: dict[TryKey, TryInProgress] = {}
        self._to_look_up = LookupQueue()
        self._to_record = RecordQueue(_BATCH)
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix=name)
        self._lookup: BatchStage[TryInProgress, list[tuple[TryInProgress, NextAction | SecretError]]] = (
            BatchStage(
                f"{name}, look-up",
                self._to_look_up,
                lookup.prepare,
                batch=_BATCH,
                threads=self._threads,
                wake=client.wake,
            )
        )
        self._recording: BatchStage[tuple[TryInProgress, RecordAction], None] = BatchStage(
            f"{name}, recording",
            self._to_record,
            self._prepare_recording,
            batch=_BATCH,
            threads=self._threads,
            wake=client.wake,
        )
        IN_FLIGHT.labels(name).set_function(lambda: self._client.in_flight)
        WAITING.labels(name).set_function(lambda: self._queues.waiting)

    def capacity(self) -> int:
        return max(0, self._max_tries - len(self._tries))

    def handle(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            message = self._requested_try(task)
            if message is None:
                continue
            one = TryInProgress(message, task)
            known = self._tries.setdefault(one.key, one)
            if known is not one:  # a duplicate of a try in progress
                known.tasks.append(task)
                known.is_revoked = False  # its partition is assigned to this process again
                continue
            self._to_look_up.add(one)

    def _requested_try(self, task: Task) -> TryMessage | IntentEvent | None:
        """Return the message, or None if the record requests no try: then it is done, or rejected."""
        message = task.message
        if self._reads_events and isinstance(message, IntentEvent):
            if message.type in EVENTS:
                return message
            task.done()
        elif isinstance(message, DeliveryDue | ResendRequested) and not self._reads_events:
            return message
        else:
            task.reject(f"{type(message).__name__} requests no try here")
        return None

    def poll(self, wait_s: float) -> float:
        if not self._tries:
            return inf
        self._run_once(wait_s if self._is_awaiting_requests() else 0)
        if not self._tries:
            return inf
        return 0 if self._is_awaiting_requests() else _RECORDING_POLL_S

    def _is_awaiting_requests(self) -> bool:
        """Whether a response or a look-up can end at any moment. Nobody waits for what is only being recorded."""
        return bool(self._client.in_flight or self._lookup.items or self._queues.waiting)

    def drain(self, partitions: Sequence[AssignedPartition]) -> None:
        """Send nothing new for these partitions. Requests in flight may finish and are recorded, within a limit."""
        revoked = set(partitions)
        self.discard(partitions)
        deadline = monotonic() + _DRAIN_S
        while monotonic() < deadline and any(
            one.slot and one.belongs_only_to(revoked) for one in self._tries.values()
        ):
            self._run_once(0.05)
        for one in self._client.abandon(lambda one: one.belongs_only_to(revoked)):
            self._forget(one)
        deadline = monotonic() + _DRAIN_RECORDS_S
        while monotonic() < deadline and any(one.belongs_only_to(revoked) for one in self._tries.values()):
            self._run_once(0.01)

    def discard(self, partitions: Sequence[AssignedPartition]) -> None:
        """Send nothing new for these partitions, and do not wait for requests in flight.

        The new owner of a partition may send the same try again, but only one of the two is recorded.
        """
        revoked = set(partitions)
        for one in self._lookup.items:
            one.is_revoked = one.is_revoked or one.belongs_only_to(revoked)
        for queue in (self._to_look_up, self._queues):
            for one in queue.remove(lambda one: one.belongs_only_to(revoked)):
                self._forget(one)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _run_once(self, wait_s: float) -> None:
        self._collect_lookups()
        self._lookup.start()
        now = monotonic()
        for one in self._queues.trim(now):
            self._to_record.add(one, MoveToSlow())
        if self._reads_events:
            for one in self._queues.trim_fast(now):
                self._to_record.add(one, MoveToDeliver())
        for slot, one in self._queues.next_to_send(now):
            one.slot = slot
            if now - one.looked_up_at > _LOOKUP_VALID_S:
                self._to_look_up.add(one)
            else:
                self._send(one)
        for one, result in self._client.poll(wait_s):
            self._complete(one, result)
        self._collect_recorded()
        self._recording.start()

    def _collect_lookups(self) -> None:
        finished = self._lookup.collect()
        if finished is None:
            return
        tries, decided = finished
        if isinstance(decided, Exception):
            self._requeue(tries, decided)
            return
        for one, action in decided:
            self._act(one, action)

    def _act(self, one: TryInProgress, action: NextAction | SecretError) -> None:
        if one.is_revoked:
            self._forget(one)
        elif isinstance(action, Send):
            one.looked_up_at = monotonic()
            if one.slot:  # it has waited in the queue, and was looked up again
                self._send(one)
            else:
                self._queues.add(one.application_id, one)
        elif isinstance(action, Drop):
            if action.why:
                _log.warning("delivery %s is not resent: %s", one.delivery_id, action.why)
            self._forget(one)
            one.done()
        elif isinstance(action, Reject):
            for task in one.tasks:
                task.reject(action.reason)
            self._requeue([one])
        elif isinstance(action, Exception):
            self._handle_error(one, action)
        else:
            self._release_slot(one)
            self._to_record.add(one, action)

    def _handle_error(self, one: TryInProgress, error: Exception) -> None:
        """Look it up again later if only its key is missing for now. Otherwise the consumer decides about the error.

        Intake leaves both to the pipeline of later tries, where partitions are not shared by all applications.
        """
        if one.event is not None:
            self._release_slot(one)
            self._to_record.add(one, MoveToDeliver())
            return
        if not isinstance(error, KeysUnavailableError) or self._to_look_up.postponed >= _MAX_WITHOUT_KEY:
            self._requeue([one], error)
            return
        if not self._to_look_up.postponed:
            _log.warning("%s; deliveries whose key is not in memory are tried again later", error)
        self._release_slot(one)
        self._to_look_up.add_later(one, _KEY_RETRY_S)

    def _send(self, one: TryInProgress) -> None:
        assert one.request is not None
        one.span = start_try_span(one)
        self._client.start(one, one.request, one.span.trace if one.span is not None else one.trace)

    def _complete(self, one: TryInProgress, result: TryResult) -> None:
        # How long the proxy took says nothing about the endpoint.
        duration_s = None if result.failure in PROXY_FAILURES else result.duration_ms / 1000
        self._queues.release(one.application_id, one.slot, duration_s)
        one.slot = 0
        if one.span is not None:
            end_try_span(one, result)
        self._to_record.add(one, Completed(result))

    def _prepare_recording(self, actions: Sequence[tuple[TryInProgress, RecordAction]]) -> Callable[[], None]:
        for one, _ in actions:
            one.start_recording()
        return self._recorder.prepare(actions)

    def _collect_recorded(self) -> None:
        finished = self._recording.collect()
        if finished is None:
            return
        actions, error = finished
        if isinstance(error, Exception):
            self._requeue([one for one, _ in actions], error)
            return
        for one, _ in actions:
            self._forget(one)
            for task in one.finish_recording():
                task.requeue()

    def _requeue(self, tries: Sequence[TryInProgress], error: Exception | None = None) -> None:
        for one in tries:
            self._forget(one)
            for task in one.tasks:
                task.requeue(error)

    def _forget(self, one: TryInProgress) -> None:
        self._release_slot(one)
        if one.span is not None:
            end_try_span(one, None)
        if self._tries.get(one.key) is one:
            del self._tries[one.key]

    def _release_slot(self, one: TryInProgress) -> None:
        if one.slot:
            self._queues.release(one.application_id, one.slot, None)
            one.slot = 0
