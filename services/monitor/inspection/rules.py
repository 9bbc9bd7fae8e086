"""Judges what was seen: three answers and a list of troubles. Pure."""

from collections.abc import Iterator
from datetime import datetime

from services.monitor.inspection.problems import Answer, Kind, Level, Question, Thresholds, Trouble
from services.monitor.inspection.snapshots import Figures, KafkaSeen, Seen, ServiceSeen
from shared.domain.topics import CHECKOUT_VERIFY, DEAD_LETTERS, WEBHOOKS_DEAD
from shared.platform.kafka.inspection.health import Health
from shared.platform.kafka.inspection.snapshot import GroupSnapshot

_MONEY, _WEBHOOKS, _STUCK = Question
_ORDER = {kind: place for place, kind in enumerate(Kind)}
_NONE: frozenset[Question] = frozenset()
# Without the first two nobody pays; without the others nobody is told.
_SERVICES = {
    "api": frozenset({_MONEY}),
    "checkout": frozenset({_MONEY}),
    "checkout-verifier": frozenset({_STUCK}),
    "scheduler": frozenset({_WEBHOOKS, _STUCK}),
    "webhooks": frozenset({_WEBHOOKS, _STUCK}),
}


def find_troubles(seen: Seen, now: datetime, thresholds: Thresholds | None = None) -> tuple[Trouble, ...]:
    """Worst first, causes before what follows from them. What cannot be seen now is not judged by what was seen."""
    limits = thresholds or Thresholds()
    found = [*_of_database(seen, now, limits), *_of_kafka(seen, now, limits), *_of_services(seen, now)]
    return tuple(sorted(found, key=lambda trouble: (-trouble.level, _ORDER[trouble.kind])))


def answer_questions(seen: Seen, now: datetime, thresholds: Thresholds | None = None) -> tuple[Answer, ...]:
    troubles = find_troubles(seen, now, thresholds)
    return tuple(_answer(question, troubles, seen, now) for question in Question)


def _answer(question: Question, troubles: tuple[Trouble, ...], seen: Seen, now: datetime) -> Answer:
    own = tuple(trouble for trouble in troubles if question in trouble.questions)
    if own:
        return Answer(question, own[0].level, own)
    is_known = seen.database.is_current(now) and (question is _MONEY or seen.kafka.is_current(now))
    if not is_known:
        return Answer(question, Level.QUIET, (), is_known=False)
    return Answer(question, Level.QUIET if _is_quiet(question, seen) else Level.GOOD, ())


def _is_quiet(question: Question, seen: Seen) -> bool:
    figures = seen.database.found
    if figures is None or question is _STUCK:
        return False
    if question is _MONEY:
        return not (figures.payments.paid.count or figures.payments.attempts.count)
    return not (figures.deliveries.succeeded or figures.deliveries.tries or figures.deliveries.waiting)


def _of_database(seen: Seen, now: datetime, limits: Thresholds) -> Iterator[Trouble]:
    looked = seen.database
    if looked.is_away(now):
        about = frozenset({_MONEY, _WEBHOOKS})
        reasons = (looked.trouble or "",)
        yield Trouble(Kind.DATABASE_AWAY, Level.BAD, about, seconds=looked.age_s(now) or 0.0, reasons=reasons)
    elif looked.found is not None and looked.is_current(now):
        yield from _of_figures(looked.found, limits)


def _of_figures(figures: Figures, limits: Thresholds) -> Iterator[Trouble]:
    """Each: what is late, by how much it may be, and what that means."""
    attempts, deliveries, payments = figures.attempts, figures.deliveries, figures.payments
    too_late = (
        (Kind.ATTEMPT_STUCK, attempts.oldest_s, limits.attempt_s, sum(attempts.under_way.values()), {_MONEY}),
        (Kind.EXPIRY_LATE, figures.expiry_late_s, limits.expiry_late_s, 0, _NONE),
        (Kind.OUTBOX_WAITS, figures.outbox.oldest_s, limits.outbox_s, figures.outbox.count, {_WEBHOOKS}),
        (Kind.NOT_TAKEN_IN, figures.not_taken_in_s, limits.not_taken_in_s, 0, {_WEBHOOKS}),
        (Kind.DELIVERIES_OVERDUE, deliveries.overdue_s, limits.overdue_s, 0, {_WEBHOOKS}),
    )
    for kind, seconds, limit, count, questions in too_late:
        if seconds > limit:
            yield Trouble(kind, Level.BAD, frozenset({*questions, _STUCK}), count=count, seconds=seconds)
    undecided = attempts.undecided
    waiting_for_people = (
        (Kind.UNDECIDED, undecided.count, undecided.oldest_s, frozenset({_STUCK})),
        (Kind.DUPLICATES, attempts.duplicates.count, 0.0, frozenset({_STUCK})),
        (Kind.ENDPOINTS_FAILING, figures.failing, 0.0, frozenset({_WEBHOOKS})),
    )
    for kind, count, seconds, about in waiting_for_people:
        if count:
            yield Trouble(kind, Level.WORRYING, about, count=count, seconds=seconds)
    decided = payments.attempts_paid + payments.attempts_declined
    if decided >= limits.decided_at_least and payments.attempts_paid < limits.paid_at_least * decided:
        paid = payments.attempts_paid
        yield Trouble(Kind.FEW_PAID, Level.WORRYING, frozenset({_MONEY}), count=paid, subject=str(decided))


def _of_kafka(seen: Seen, now: datetime, limits: Thresholds) -> Iterator[Trouble]:
    looked = seen.kafka
    if looked.is_away(now):
        about = frozenset({_WEBHOOKS, _STUCK})
        reasons = (looked.trouble or "",)
        yield Trouble(Kind.KAFKA_AWAY, Level.BAD, about, seconds=looked.age_s(now) or 0.0, reasons=reasons)
    elif looked.found is not None and looked.is_current(now):
        yield from _of_topics(looked.found)
        for group in looked.found.view.groups:
            yield from _of_group(group, looked.found.standing(group.name), limits)


def _of_topics(kafka: KafkaSeen) -> Iterator[Trouble]:
    for topic in kafka.view.topics:
        if not topic.exists:
            yield Trouble(Kind.TOPIC_MISSING, Level.BAD, _about(topic.name), topic.name)
    for topic_name, kind, level, about in (
        (DEAD_LETTERS.name, Kind.DEAD_LETTERS, Level.BAD, frozenset({_WEBHOOKS, _STUCK})),
        (WEBHOOKS_DEAD.name, Kind.DELIVERIES_EXHAUSTED, Level.WORRYING, frozenset({_WEBHOOKS})),
    ):
        dead = kafka.dead.get(topic_name)
        if dead is not None and dead.in_an_hour:
            yield Trouble(kind, level, about, topic_name, count=dead.in_an_hour)


def _of_group(group: GroupSnapshot, standing: Health, limits: Thresholds) -> Iterator[Trouble]:
    """One trouble at most: the one that says most."""
    kind = {
        Health.STALLED: Kind.GROUP_STALLED,
        Health.NO_MEMBERS: Kind.GROUP_UNATTENDED,
    }.get(standing)
    limit_s = limits.retry_late_s if group.is_delay else limits.lag_s
    if kind is None and group.lag_s > limit_s:
        kind = Kind.RETRIES_LATE if group.is_delay else Kind.GROUP_BEHIND
    if kind is not None:
        yield Trouble(kind, Level.BAD, _about(group.topic), group.name, count=group.lag, seconds=group.lag_s)


def _of_services(seen: Seen, now: datetime) -> Iterator[Trouble]:
    if seen.services.found is None or not seen.services.is_current(now):
        return
    for service in seen.services.found:
        if not service.is_ready:
            yield _of_service(service)


def _of_service(service: ServiceSeen) -> Trouble:
    about = _SERVICES.get(service.name, _NONE)
    kind = Kind.SERVICE_NOT_READY if service.is_up else Kind.SERVICE_DOWN
    level = Level.BAD if about or not service.is_up else Level.WORRYING
    return Trouble(kind, level, about, service.name, reasons=service.reasons)


def _about(topic: str) -> frozenset[Question]:
    return frozenset({_STUCK, _MONEY if topic == CHECKOUT_VERIFY.name else _WEBHOOKS})
