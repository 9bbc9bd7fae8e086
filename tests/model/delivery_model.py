"""The exhaustive model of one webhook delivery (§6.6): two workers, repeated and lost records, crashes at each step,
resends, a pause, and a URL that is removed. The product's own functions decide what follows.
"""

from collections.abc import Hashable, Iterator
from datetime import UTC, datetime

from services.webhooks import retry_schedule
from services.webhooks.pipeline import next_action
from services.webhooks.pipeline.next_action import (
    Drop,
    FailWithoutUrl,
    NextAction,
    PublishExhausted,
    Reject,
    Requeue,
    Send,
    SetAside,
)
from services.webhooks.retry_schedule import DeliveryStatus
from shared.domain.messages import DeliveryDue
from tests.model.delivery_state import (
    DELAYS,
    DELIVERY_ID,
    Delivery,
    DeliveryBounds,
    Record,
    Try,
    add_worker,
    as_row,
    describe,
    done,
    publish,
    replace_worker,
)
from tests.model.exploration import ViolationError

_RESEND = 0
_DUE_AT = datetime(2027, 1, 1, tzinfo=UTC)
Step = tuple[str, Delivery]


class DeliveryModel:
    def __init__(self, bounds: DeliveryBounds) -> None:
        self._bounds = bounds
        self._ends: set[Hashable] = set()

    def initial(self) -> Delivery:
        return Delivery(resends_left=self._bounds.resends)

    def key(self, state: Delivery) -> Hashable:
        return self.canonical(state)

    def canonical(self, state: Delivery) -> Delivery:
        """A lost topic makes no difference once the scheduler can find the delivery."""
        is_found = state.status is DeliveryStatus.PENDING and not state.workers
        return state._replace(is_topic_lost=False) if is_found else state

    def describe(self, state: Delivery) -> str:
        return describe(state)

    def successors(self, state: Delivery) -> Iterator[Step]:
        for action, after in self._steps(state):
            _check_step(action, state, after)
            yield action, after

    def check(self, state: Delivery) -> None:
        if state.status is DeliveryStatus.PENDING:
            _require(state.due_in is not None, "pending, and never due")
            _require(state.scheduled_tries == state.step - 1, "a try was skipped or counted twice")
        _require(state.scheduled_tries <= self._bounds.steps, "more scheduled tries than allowed")
        if state.status is DeliveryStatus.FAILED and not state.ended_without_url:
            _require(state.scheduled_tries == self._bounds.steps, "failed before the last try")
        if not state.workers:
            for is_success in (False, True):
                self._check_ends(state, is_success=is_success)

    def _steps(self, state: Delivery) -> Iterator[Step]:
        yield from _pass_time(state)
        yield from _requeue(state)
        if self._bounds.has_faults_of_application:
            yield "an operator pauses or resumes", state._replace(is_paused=not state.is_paused)
            yield "the URL is removed or set", state._replace(has_url=not state.has_url)
        if state.resends_left:
            resend = state._replace(resends_left=state.resends_left - 1, resend_requested=True)
            yield "a developer clicks on resend", resend
        yield from self._lose_and_repeat_records(state)
        if len(state.workers) < self._bounds.workers:
            for record in state.records:
                if record.due_in == 0:
                    yield from _read(state, record.step)
            if state.resend_requested:
                yield from _read_resend(state)
        for one in state.workers:
            yield from _progress(state, one)

    def _lose_and_repeat_records(self, state: Delivery) -> Iterator[Step]:
        for record in state.records:
            if record.due_in > 0:
                early = state._replace(records=state.records - {record} | {Record(record.step)})
                yield (
                    f"the record of step {record.step} leaves its delay topic early, by a wrong clock",
                    early,
                )
        if state.records:
            lost = state._replace(records=frozenset(), is_topic_lost=True)
            yield "all records are lost with their topic", lost
        if len(state.records) < self._bounds.records:
            made = state.step - (state.status is DeliveryStatus.PENDING)
            for step in range(1, made + 1):
                yield f"the record of step {step} will be read again", publish(state, Record(step))

    def _check_ends(self, state: Delivery, *, is_success: bool) -> None:
        """Without faults, and with a receiver that always fails or always works, the delivery ends."""
        state = state._replace(is_paused=False, resend_requested=False)
        path = []
        while (state, is_success) not in self._ends:
            path.append((state, is_success))
            after = _next_quiet_step(state, is_success=is_success)
            if after is None:
                _require(state.status is not DeliveryStatus.PENDING, "pending for ever")
                # With two workers, one can end the record while the other crashes before it publishes. Then
                # webhooks.dead lacks the delivery, which is failed nevertheless.
                is_told = state.is_exhausted_published or state.ended_without_url or state.is_topic_lost
                _require(
                    is_told or self._bounds.workers > 1 or state.status is not DeliveryStatus.FAILED,
                    "nobody is told that all tries failed",
                )
                break
            _check_step("without faults", state, after)
            _require(len(path) < 200, "it never ends")
            state = after
        self._ends.update(path)


def _pass_time(state: Delivery) -> Iterator[Step]:
    due_in = None if state.due_in is None else max(0, state.due_in - 1)
    records = frozenset(Record(one.step, max(0, one.due_in - 1)) for one in state.records)
    after = state._replace(due_in=due_in, records=records)
    if after != state:
        yield "time passes", after


def _requeue(state: Delivery) -> Iterator[Step]:
    """The scheduler's requeue sweep, as in requeue_deliveries.py."""
    is_due = state.status is DeliveryStatus.PENDING and state.due_in == 0
    if state.is_paused:
        return
    if state.is_set_aside:
        after = state._replace(is_set_aside=False)
        yield "requeued after the pause", publish(after, Record(state.step)) if is_due else after
    elif is_due:
        yield "requeued because it is overdue", publish(state, Record(state.step))


def _read(state: Delivery, step: int) -> Iterator[Step]:
    action = next_action.decide(DeliveryDue(DELIVERY_ID, DELIVERY_ID, step, _DUE_AT), as_row(state))
    name = f"a worker reads the record of step {step}: {type(action).__name__}"
    if isinstance(action, Send):
        _require(state.has_url and not state.is_paused, f"{name}, to an application without URL or paused")
        _require(state.due_in == 0, f"{name}, early")
        yield name, add_worker(state, Try(step, "looked up"))
    elif isinstance(action, FailWithoutUrl):
        failed = state._replace(status=DeliveryStatus.FAILED, due_in=None, ended_without_url=True)
        yield name, done(failed if state.status is DeliveryStatus.PENDING else state, step)
    elif isinstance(action, SetAside):
        yield name, done(state._replace(is_set_aside=True), step)
    elif isinstance(action, Drop | Reject):
        yield name, done(state, step)
    else:
        yield name, add_worker(state, Try(step, "written", _to_publish(state, action)))


def _read_resend(state: Delivery) -> Iterator[Step]:
    action = next_action.decide_resend(as_row(state), is_recorded=False)
    name = f"a worker reads the resend: {type(action).__name__}"
    if isinstance(action, Send):
        yield name, add_worker(state, Try(_RESEND, "looked up"))
    else:
        yield name, state._replace(resend_requested=False)


def _progress(state: Delivery, one: Try) -> Iterator[Step]:
    yield f"the worker of step {one.step} crashes", replace_worker(state, one, None)
    if one.result == "looked up":
        for result in ("failed", "succeeded"):
            yield (
                f"the request of step {one.step} {result}",
                replace_worker(state, one, one._replace(result=result)),
            )
    elif one.result == "written":
        after = replace_worker(state, one, None)
        if isinstance(one.publishes, Record):
            after = publish(after, one.publishes)
        elif one.publishes is not None:
            after = after._replace(is_exhausted_published=True)
        yield f"the worker of step {one.step} publishes what follows", done(after, one.step)
    elif one.step == _RESEND:
        if one.result == "succeeded":
            state = state._replace(status=DeliveryStatus.SUCCEEDED, due_in=None)
        after = replace_worker(state, one, None)
        yield "the resend is recorded", after._replace(resend_requested=False)
    else:
        yield f"the try of step {one.step} is recorded", _record(state, one)


def _record(state: Delivery, one: Try) -> Delivery:
    """As RECORD_TRIES_SQL and recording._write: only if the delivery is still at that step."""
    if state.status is not DeliveryStatus.PENDING or state.step != one.step:
        action = next_action.decide(DeliveryDue(DELIVERY_ID, DELIVERY_ID, one.step, _DUE_AT), as_row(state))
        return replace_worker(state, one, Try(one.step, "written", _to_publish(state, action)))
    decision = retry_schedule.decide_after_try(
        one.step, is_success=one.result == "succeeded", retry_delays=DELAYS
    )
    due_in = None if decision.wait_s is None else int(decision.wait_s)
    after = state._replace(
        status=decision.status,
        step=decision.next_step,
        due_in=due_in,
        scheduled_tries=state.scheduled_tries + 1,
    )
    publishes: Record | str | None = None
    if decision.status is DeliveryStatus.FAILED:
        publishes = "exhausted"
    elif due_in is not None:
        publishes = Record(decision.next_step, due_in)
    return replace_worker(after, one, Try(one.step, "written", publishes))


def _to_publish(state: Delivery, action: NextAction) -> Record | str | None:
    if isinstance(action, Requeue) and state.due_in is not None:
        return Record(state.step, state.due_in)
    return "exhausted" if isinstance(action, PublishExhausted) else None


def _check_step(action: str, before: Delivery, after: Delivery) -> None:
    was_final = before.status is DeliveryStatus.SUCCEEDED
    _require(not was_final or after.status is before.status, f"{action}: succeeded is not final")
    if before.status is DeliveryStatus.FAILED:
        _require(after.status is not DeliveryStatus.PENDING, f"{action}: failed became pending")
    tries = after.scheduled_tries - before.scheduled_tries
    _require(tries in (0, 1), f"{action}: {tries} tries at once")
    if tries and after.status is DeliveryStatus.PENDING:
        _require(after.due_in == DELAYS[before.step - 1], f"{action}: the next try is too early or too late")


def _next_quiet_step(state: Delivery, *, is_success: bool) -> Delivery | None:
    """Return the state after the next thing that a working system does, or None if nothing is left to do."""
    result = "succeeded" if is_success else "failed"
    for one in state.workers:
        steps = [after for _, after in _progress(state, one)][1:]  # without the crash
        return steps[result == "succeeded"] if one.result == "looked up" else steps[0]
    for record in state.records:
        if record.due_in == 0:
            return next(_read(state, record.step))[1]
    for step in (*_pass_time(state), *_requeue(state)):
        return step[1]
    return None


def _require(holds: bool, promise: str) -> None:
    if not holds:
        raise ViolationError(promise)
