"""The rules that turn the state of the system into three answers and a list of problems."""

from dataclasses import replace
from datetime import timedelta

import pytest

from services.monitor.inspection.problems import HealthLevel, HealthQuestion, ProblemKind
from services.monitor.inspection.rules import answer_health_questions, find_problems
from services.monitor.inspection.snapshots import (
    AttemptFigures,
    Backlog,
    BoundedCount,
    DeadLetterCounts,
    DeliveryFigures,
    PaymentFigures,
    PollResult,
    SystemState,
)
from shared.platform.kafka.inspection.health import Health
from tests.monitor.snapshot_builders import NOW, figures, group, kafka, lag, seen, service

PAYMENTS, WEBHOOKS, STUCK = HealthQuestion
QUIET, GOOD, WORRYING, BAD = HealthLevel
BUSY = figures(
    payments=PaymentFigures(paid=BoundedCount(9), attempts=BoundedCount(9)),
    deliveries=DeliveryFigures({}, succeeded=9),
)


def attempts(oldest_age_s: float = 0.0, undecided: int = 0, duplicates: int = 0) -> AttemptFigures:
    in_progress = {"sent": 1, "unknown": 0}
    return AttemptFigures(
        in_progress, oldest_age_s, Backlog(undecided, 60.0), duplicates=BoundedCount(duplicates)
    )


def levels(state: SystemState) -> tuple[HealthLevel, ...]:
    return tuple(answer.level for answer in answer_health_questions(state, NOW))


def kinds(state: SystemState) -> list[ProblemKind]:
    return [problem.kind for problem in find_problems(state, NOW)]


# A value at the threshold, and one beyond it.
LIMITS = [
    (
        figures(outbox=Backlog(5, 30.0)),
        figures(outbox=Backlog(5, 31.0)),
        ProblemKind.OUTBOX_OLD,
        {WEBHOOKS, STUCK},
    ),
    (
        figures(attempts=attempts(300.0)),
        figures(attempts=attempts(301.0)),
        ProblemKind.ATTEMPT_STUCK,
        {PAYMENTS, STUCK},
    ),
    (figures(expiry_late_s=60.0), figures(expiry_late_s=61.0), ProblemKind.EXPIRY_LATE, {STUCK}),
    (figures(intake_age_s=300.0), figures(intake_age_s=301.0), ProblemKind.INTAKE_LATE, {WEBHOOKS, STUCK}),
    (
        figures(deliveries=DeliveryFigures({}, overdue_s=900.0)),
        figures(deliveries=DeliveryFigures({}, overdue_s=901.0)),
        ProblemKind.DELIVERIES_OVERDUE,
        {WEBHOOKS, STUCK},
    ),
]


@pytest.mark.parametrize(("fine", "late", "kind", "questions"), LIMITS, ids=[str(row[2]) for row in LIMITS])
def test_values_beyond_their_threshold_are_critical(fine, late, kind, questions) -> None:  # type: ignore[no-untyped-def]
    assert kinds(seen(fine)) == []
    [problem] = find_problems(seen(late), NOW)
    assert (problem.kind, problem.level, set(problem.questions)) == (kind, BAD, questions)
    bad = {answer.question for answer in answer_health_questions(seen(late), NOW) if answer.level is BAD}
    assert bad == questions


WAITING_FOR_PEOPLE = [
    (figures(attempts=attempts(undecided=2)), ProblemKind.UNDECIDED, STUCK),
    (figures(attempts=attempts(duplicates=1)), ProblemKind.DUPLICATES, STUCK),
    (figures(failing=3), ProblemKind.ENDPOINTS_FAILING, WEBHOOKS),
]


@pytest.mark.parametrize(
    ("found", "kind", "question"), WAITING_FOR_PEOPLE, ids=[str(row[1]) for row in WAITING_FOR_PEOPLE]
)
def test_problems_that_people_must_resolve_are_warnings(found, kind, question) -> None:  # type: ignore[no-untyped-def]
    [problem] = find_problems(seen(found), NOW)
    assert (problem.kind, problem.level, set(problem.questions)) == (kind, WORRYING, {question})


@pytest.mark.parametrize(
    ("paid", "declined", "is_told"),
    [(4, 15, False), (5, 15, False), (4, 16, True), (0, 19, False), (0, 0, False)],
)
def test_low_success_rate_is_a_warning_once_enough_attempts_have_ended(
    paid: int, declined: int, is_told: bool
) -> None:
    payments = PaymentFigures(attempts=BoundedCount(50), attempts_paid=paid, attempts_declined=declined)
    assert (kinds(seen(figures(payments=payments))) == [ProblemKind.LOW_SUCCESS_RATE]) is is_told


GROUPS = [
    # At the threshold.
    ("webhooks.deliver", lag(records=9, seconds=60.0), Health.BEHIND, None),
    # Beyond the threshold.
    ("webhooks.deliver", lag(records=9, seconds=61.0), Health.BEHIND, ProblemKind.GROUP_BEHIND),
    # The threshold of retries is lower, and records that are not due are not late.
    ("webhooks.delay.3", lag(records=9, seconds=31.0), Health.BEHIND, ProblemKind.RETRIES_LATE),
    ("webhooks.delay.3", lag(records=9), Health.HEALTHY, None),
    # A group that does not consume is one problem, not also a late one.
    ("webhooks.deliver", lag(records=9, seconds=999.0), Health.STALLED, ProblemKind.GROUP_STALLED),
    ("webhooks.deliver", lag(records=9, seconds=999.0), Health.NO_MEMBERS, ProblemKind.GROUP_WITHOUT_MEMBERS),
]


@pytest.mark.parametrize(("topic", "at", "health", "kind"), GROUPS)
def test_unhealthy_groups_are_problems(topic, at, health, kind) -> None:  # type: ignore[no-untyped-def]
    state = seen(None, kafka(group(topic, at), health=health))
    assert kinds(state) == ([kind] if kind else [])


def test_late_verification_affects_payments_and_other_topics_affect_webhooks() -> None:
    late = lag(records=1, seconds=99.0)
    for topic, question in (("checkout.verify", PAYMENTS), ("webhooks.slow", WEBHOOKS)):
        [problem] = find_problems(seen(None, kafka(group(topic, late))), NOW)
        assert problem.questions == {question, STUCK}


def test_only_dead_letters_of_the_last_hour_are_a_problem() -> None:
    old = {"dead_letters": DeadLetterCounts(7, 0, 7), "webhooks.dead": DeadLetterCounts(7, 0, 7)}
    new = {"dead_letters": DeadLetterCounts(7, 1, 7), "webhooks.dead": DeadLetterCounts(7, 2, 7)}
    assert kinds(seen(None, kafka(dead=old))) == []
    told = find_problems(seen(None, kafka(dead=new)), NOW)
    assert [(one.kind, one.level, one.count) for one in told] == [
        (ProblemKind.DEAD_LETTERS, BAD, 1),
        (ProblemKind.DELIVERIES_EXHAUSTED, WORRYING, 2),
    ]


def test_missing_topic_is_a_problem() -> None:
    [problem] = find_problems(seen(None, kafka(missing=["webhooks.deliver"])), NOW)
    assert (problem.kind, problem.subject) == (ProblemKind.TOPIC_MISSING, "webhooks.deliver")


def test_unready_service_affects_only_the_questions_it_serves() -> None:
    down = service("checkout", is_up=False, is_ready=False)
    unready = service("webhooks", is_ready=False)
    beside = service("dashboard", is_ready=False)
    assert levels(seen(BUSY, None, down)) == (BAD, GOOD, GOOD)
    assert levels(seen(BUSY, None, unready)) == (GOOD, BAD, BAD)
    assert levels(seen(BUSY, None, beside)) == (GOOD, GOOD, GOOD)
    assert kinds(seen(None, None, beside)) == [ProblemKind.SERVICE_NOT_READY]


def test_healthy_system_has_no_problems() -> None:
    assert levels(seen(BUSY, None, service())) == (GOOD, GOOD, GOOD)
    assert kinds(seen(BUSY)) == []


def test_system_without_payments_is_quiet_and_has_no_problems() -> None:
    assert levels(seen()) == (QUIET, QUIET, GOOD)
    assert all(answer.is_known for answer in answer_health_questions(seen(), NOW))


def test_before_the_first_poll_no_answer_is_known() -> None:
    answers = answer_health_questions(SystemState(), NOW)
    assert [(answer.level, answer.is_known) for answer in answers] == [(QUIET, False)] * 3


def test_problems_are_sorted_worst_first() -> None:
    state = seen(figures(attempts=attempts(oldest_age_s=400.0, undecided=1), failing=1))
    assert [problem.level for problem in find_problems(state, NOW)] == [BAD, WORRYING, WORRYING]


def test_unavailable_kafka_affects_webhooks_but_not_payments() -> None:
    """Its last result is no longer judged."""
    late = kafka(group("webhooks.deliver", lag(records=9, seconds=99.0)))
    away = PollResult(late, NOW - timedelta(seconds=60), "no answer", NOW)
    state = replace(seen(BUSY), kafka=away)
    assert levels(state) == (GOOD, BAD, BAD)
    [problem] = find_problems(state, NOW)
    assert (problem.kind, problem.seconds, problem.reasons) == (
        ProblemKind.KAFKA_UNAVAILABLE,
        60.0,
        ("no answer",),
    )


def test_unavailable_database_is_critical_and_its_last_figures_are_not_judged() -> None:
    away = PollResult(figures(failing=3), NOW - timedelta(seconds=11), "refused", NOW)
    state = replace(seen(), database=away)
    assert kinds(state) == [ProblemKind.DATABASE_UNAVAILABLE]
    assert levels(state)[:2] == (BAD, BAD)
    never = replace(seen(), database=PollResult(None, None, "refused", NOW))
    assert kinds(never) == [ProblemKind.DATABASE_UNAVAILABLE]


def test_one_failed_poll_is_not_a_problem() -> None:
    shaky = PollResult(BUSY, NOW - timedelta(seconds=9), "slow", NOW)
    assert levels(replace(seen(BUSY), database=shaky)) == (GOOD, GOOD, GOOD)


def test_an_old_result_is_not_judged() -> None:
    """No poll failed, but the last result is old."""
    long_ago = NOW - timedelta(minutes=5)
    late = kafka(group("webhooks.deliver", lag(records=9, seconds=99.0)))
    silent = SystemState(
        PollResult(late, long_ago), PollResult(figures(failing=3), long_ago), PollResult((), NOW)
    )
    assert kinds(silent) == []
    assert [answer.is_known for answer in answer_health_questions(silent, NOW)] == [False] * 3
