"""The rules that find problems in the state of the system, and answer the questions of the overview. No I/O."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from services.monitor.inspection.problems import (
    HealthAnswer,
    HealthLevel,
    HealthQuestion,
    Problem,
    ProblemKind,
)
from services.monitor.inspection.snapshots import DatabaseSnapshot, KafkaState, ServiceStatus, SystemState
from shared.domain.topics import CHECKOUT_VERIFY, DEAD_LETTERS, WEBHOOKS_DEAD
from shared.platform.kafka.inspection.health import Health
from shared.platform.kafka.inspection.snapshot import GroupSnapshot

_PAYMENTS, _WEBHOOKS, _STUCK = HealthQuestion
_ORDER = {kind: position for position, kind in enumerate(ProblemKind)}
_NONE: frozenset[HealthQuestion] = frozenset()
# Without the first two nobody can pay; without the others merchants are not notified.
_SERVICES = {
    "api": frozenset({_PAYMENTS}),
    "checkout": frozenset({_PAYMENTS}),
    "checkout-verifier": frozenset({_STUCK}),
    "scheduler": frozenset({_WEBHOOKS, _STUCK}),
    "webhooks": frozenset({_WEBHOOKS, _STUCK}),
}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits, in seconds unless noted. The alert rules of observability/ use the same numbers."""

    lag_s: float = 60.0
    outbox_s: float = 30.0
    retry_late_s: float = 30.0
    attempt_s: float = 300.0
    expiry_late_s: float = 60.0
    intake_age_s: float = 300.0
    overdue_s: float = 900.0
    min_decided: int = 20
    """Attempts decided in an hour. With fewer, the success rate says nothing."""
    min_share_paid: float = 0.25
    """Share of decided attempts that are paid."""


def find_problems(
    state: SystemState, now: datetime, thresholds: Thresholds | None = None
) -> tuple[Problem, ...]:
    """Return the problems, the most severe first and causes before their consequences.

    Results that are no longer current are not judged.
    """
    limits = thresholds or Thresholds()
    problems = [
        *_database_problems(state, now, limits),
        *_kafka_problems(state, now, limits),
        *_service_problems(state, now),
    ]
    return tuple(sorted(problems, key=lambda problem: (-problem.level, _ORDER[problem.kind])))


def answer_health_questions(
    state: SystemState, now: datetime, thresholds: Thresholds | None = None
) -> tuple[HealthAnswer, ...]:
    problems = find_problems(state, now, thresholds)
    return tuple(_answer(question, problems, state, now) for question in HealthQuestion)


def _answer(
    question: HealthQuestion, problems: tuple[Problem, ...], state: SystemState, now: datetime
) -> HealthAnswer:
    own = tuple(problem for problem in problems if question in problem.questions)
    if own:
        return HealthAnswer(question, own[0].level, own)
    is_known = state.database.is_current(now) and (question is _PAYMENTS or state.kafka.is_current(now))
    if not is_known:
        return HealthAnswer(question, HealthLevel.IDLE, (), is_known=False)
    return HealthAnswer(question, HealthLevel.IDLE if _is_idle(question, state) else HealthLevel.HEALTHY, ())


def _is_idle(question: HealthQuestion, state: SystemState) -> bool:
    snapshot = state.database.value
    if snapshot is None or question is _STUCK:
        return False
    if question is _PAYMENTS:
        return not (snapshot.payments.paid.count or snapshot.payments.attempts.count)
    return not (snapshot.deliveries.succeeded or snapshot.deliveries.tries or snapshot.deliveries.waiting)


def _database_problems(state: SystemState, now: datetime, limits: Thresholds) -> Iterator[Problem]:
    poll = state.database
    if poll.is_unavailable(now):
        yield Problem(
            ProblemKind.DATABASE_UNAVAILABLE,
            HealthLevel.CRITICAL,
            frozenset({_PAYMENTS, _WEBHOOKS}),
            seconds=poll.age_s(now) or 0.0,
            reasons=(poll.error or "",),
        )
    elif poll.value is not None and poll.is_current(now):
        yield from _late_problems(poll.value, limits)
        yield from _waiting_problems(poll.value)
        yield from _success_rate_problems(poll.value, limits)


def _late_problems(snapshot: DatabaseSnapshot, limits: Thresholds) -> Iterator[Problem]:
    """Yield what is late by more than its threshold."""
    attempts, outbox = snapshot.attempts, snapshot.outbox
    in_progress = sum(attempts.in_progress.values())
    overdue_s = snapshot.deliveries.overdue_s
    for kind, seconds, limit, count, questions in (
        (ProblemKind.ATTEMPT_STUCK, attempts.oldest_age_s, limits.attempt_s, in_progress, {_PAYMENTS}),
        (ProblemKind.EXPIRY_LATE, snapshot.expiry_late_s, limits.expiry_late_s, 0, _NONE),
        (ProblemKind.OUTBOX_OLD, outbox.oldest_age_s, limits.outbox_s, outbox.count, {_WEBHOOKS}),
        (ProblemKind.INTAKE_LATE, snapshot.intake_age_s, limits.intake_age_s, 0, {_WEBHOOKS}),
        (ProblemKind.DELIVERIES_OVERDUE, overdue_s, limits.overdue_s, 0, {_WEBHOOKS}),
    ):
        if seconds > limit:
            about = frozenset({*questions, _STUCK})
            yield Problem(kind, HealthLevel.CRITICAL, about, count=count, seconds=seconds)


def _waiting_problems(snapshot: DatabaseSnapshot) -> Iterator[Problem]:
    """Yield what waits for a person."""
    undecided, duplicates = snapshot.attempts.undecided, snapshot.attempts.duplicates
    for kind, count, seconds, question in (
        (ProblemKind.UNDECIDED, undecided.count, undecided.oldest_age_s, _STUCK),
        (ProblemKind.DUPLICATES, duplicates.count, 0.0, _STUCK),
        (ProblemKind.ENDPOINTS_FAILING, snapshot.failing_applications, 0.0, _WEBHOOKS),
    ):
        if count:
            yield Problem(kind, HealthLevel.WARNING, frozenset({question}), count=count, seconds=seconds)


def _success_rate_problems(snapshot: DatabaseSnapshot, limits: Thresholds) -> Iterator[Problem]:
    paid = snapshot.payments.attempts_paid
    decided = paid + snapshot.payments.attempts_declined
    if decided >= limits.min_decided and paid < limits.min_share_paid * decided:
        yield Problem(
            ProblemKind.LOW_SUCCESS_RATE,
            HealthLevel.WARNING,
            frozenset({_PAYMENTS}),
            count=paid,
            subject=str(decided),
        )


def _kafka_problems(state: SystemState, now: datetime, limits: Thresholds) -> Iterator[Problem]:
    poll = state.kafka
    if poll.is_unavailable(now):
        yield Problem(
            ProblemKind.KAFKA_UNAVAILABLE,
            HealthLevel.CRITICAL,
            frozenset({_WEBHOOKS, _STUCK}),
            seconds=poll.age_s(now) or 0.0,
            reasons=(poll.error or "",),
        )
    elif poll.value is not None and poll.is_current(now):
        yield from _topic_problems(poll.value)
        for group in poll.value.snapshot.groups:
            yield from _group_problems(group, poll.value.health_of(group.name), limits)


def _topic_problems(kafka: KafkaState) -> Iterator[Problem]:
    for topic in kafka.snapshot.topics:
        if not topic.exists:
            questions = _questions_of_topic(topic.name)
            yield Problem(ProblemKind.TOPIC_MISSING, HealthLevel.CRITICAL, questions, topic.name)
    for topic_name, kind, level, questions in (
        (DEAD_LETTERS.name, ProblemKind.DEAD_LETTERS, HealthLevel.CRITICAL, frozenset({_WEBHOOKS, _STUCK})),
        (WEBHOOKS_DEAD.name, ProblemKind.DELIVERIES_EXHAUSTED, HealthLevel.WARNING, frozenset({_WEBHOOKS})),
    ):
        counts = kafka.dead_letters.get(topic_name)
        if counts is not None and counts.last_hour:
            yield Problem(kind, level, questions, topic_name, count=counts.last_hour)


def _group_problems(group: GroupSnapshot, health: Health, limits: Thresholds) -> Iterator[Problem]:
    """Yield at most one problem for a group: the most specific one."""
    kind = {
        Health.STALLED: ProblemKind.GROUP_STALLED,
        Health.NO_MEMBERS: ProblemKind.GROUP_WITHOUT_MEMBERS,
    }.get(health)
    limit_s = limits.retry_late_s if group.is_delay else limits.lag_s
    if kind is None and group.lag_s > limit_s:
        kind = ProblemKind.RETRIES_LATE if group.is_delay else ProblemKind.GROUP_BEHIND
    if kind is not None:
        questions = _questions_of_topic(group.topic)
        yield Problem(kind, HealthLevel.CRITICAL, questions, group.name, count=group.lag, seconds=group.lag_s)


def _service_problems(state: SystemState, now: datetime) -> Iterator[Problem]:
    if state.services.value is None or not state.services.is_current(now):
        return
    for service in state.services.value:
        if not service.is_ready:
            yield _service_problem(service)


def _service_problem(service: ServiceStatus) -> Problem:
    questions = _SERVICES.get(service.name, _NONE)
    kind = ProblemKind.SERVICE_NOT_READY if service.is_up else ProblemKind.SERVICE_DOWN
    level = HealthLevel.CRITICAL if questions or not service.is_up else HealthLevel.WARNING
    return Problem(kind, level, questions, service.name, reasons=service.reasons)


def _questions_of_topic(topic: str) -> frozenset[HealthQuestion]:
    return frozenset({_STUCK, _PAYMENTS if topic == CHECKOUT_VERIFY.name else _WEBHOOKS})
