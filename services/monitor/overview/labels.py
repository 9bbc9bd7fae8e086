"""Labels of the overview: answers, problems, and the page to open for each problem."""

from collections.abc import Callable

from flask import url_for
from flask_babel import gettext as _
from flask_babel import lazy_gettext, ngettext
from markupsafe import Markup, escape

from services.monitor.formatting import format_duration, format_integer
from services.monitor.inspection.problems import (
    HealthAnswer,
    HealthLevel,
    HealthQuestion,
    Problem,
    ProblemKind,
)
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_SLOW

QUESTIONS = {
    HealthQuestion.PAYMENTS: lazy_gettext("Is money being taken?"),
    HealthQuestion.WEBHOOKS: lazy_gettext("Are webhooks going out?"),
    HealthQuestion.STUCK: lazy_gettext("Is anything stuck?"),
}
_YES = {
    HealthLevel.IDLE: lazy_gettext("Quiet"),
    HealthLevel.HEALTHY: lazy_gettext("Yes"),
    HealthLevel.WARNING: lazy_gettext("Yes, with warnings"),
    HealthLevel.CRITICAL: lazy_gettext("In trouble"),
}
_NO = {
    HealthLevel.IDLE: lazy_gettext("No"),
    HealthLevel.HEALTHY: lazy_gettext("No"),
    HealthLevel.WARNING: lazy_gettext("Something needs a decision"),
    HealthLevel.CRITICAL: lazy_gettext("Yes"),
}
TONES = {
    HealthLevel.IDLE: "quiet",
    HealthLevel.HEALTHY: "good",
    HealthLevel.WARNING: "waiting",
    HealthLevel.CRITICAL: "bad",
}
LEVELS = {HealthLevel.WARNING: lazy_gettext("Check soon"), HealthLevel.CRITICAL: lazy_gettext("Act now")}
_GROUP_KINDS = frozenset(
    {
        ProblemKind.GROUP_STALLED,
        ProblemKind.GROUP_WITHOUT_MEMBERS,
        ProblemKind.GROUP_BEHIND,
        ProblemKind.RETRIES_LATE,
        ProblemKind.TOPIC_MISSING,
    }
)


def describe_answer(answer: HealthAnswer) -> str:
    if not answer.is_known:
        return str(_("Not known yet"))
    return str((_NO if answer.question is HealthQuestion.STUCK else _YES)[answer.level])


def describe_problem(problem: Problem) -> Markup:
    """Return one sentence that says what is wrong. Names stay left to right in both languages."""
    if problem.kind in _COUNT_SENTENCES:
        return escape(_COUNT_SENTENCES[problem.kind](problem.count))
    return escape(str(_SENTENCES[problem.kind])) % {
        "subject": Markup('<bdi dir="ltr">{}</bdi>').format(problem.subject),
        "count": format_integer(problem.count),
        "duration": format_duration(problem.seconds),
    }


_COUNT_SENTENCES: dict[ProblemKind, Callable[[int], str]] = {
    ProblemKind.DEAD_LETTERS: lambda n: ngettext(
        "%(num)s record could not be processed in the last hour.",
        "%(num)s records could not be processed in the last hour.",
        n,
    ),
    ProblemKind.DELIVERIES_EXHAUSTED: lambda n: ngettext(
        "%(num)s delivery exhausted its retries in the last hour.",
        "%(num)s deliveries exhausted their retries in the last hour.",
        n,
    ),
    ProblemKind.UNDECIDED: lambda n: ngettext(
        "%(num)s payment attempt waits for your decision.",
        "%(num)s payment attempts wait for your decision.",
        n,
    ),
    ProblemKind.DUPLICATES: lambda n: ngettext(
        "%(num)s duplicate payment is not handled.",
        "%(num)s duplicate payments are not handled.",
        n,
    ),
    ProblemKind.ENDPOINTS_FAILING: lambda n: ngettext(
        "The endpoint of %(num)s application accepts nothing.",
        "The endpoints of %(num)s applications accept nothing.",
        n,
    ),
}
_SENTENCES = {
    ProblemKind.DATABASE_UNAVAILABLE: lazy_gettext("The database does not answer."),
    ProblemKind.KAFKA_UNAVAILABLE: lazy_gettext("Kafka does not answer. Payments continue; webhooks wait."),
    ProblemKind.SERVICE_DOWN: lazy_gettext("The service %(subject)s is down."),
    ProblemKind.SERVICE_NOT_READY: lazy_gettext("The service %(subject)s is not ready."),
    ProblemKind.OUTBOX_OLD: lazy_gettext(
        "The outbox has not been published for %(duration)s: %(count)s rows wait."
    ),
    ProblemKind.INTAKE_LATE: lazy_gettext("An event has waited %(duration)s for the webhook intake."),
    ProblemKind.DELIVERIES_OVERDUE: lazy_gettext("A delivery is overdue by %(duration)s."),
    ProblemKind.EXPIRY_LATE: lazy_gettext("Payments expire %(duration)s late."),
    ProblemKind.ATTEMPT_STUCK: lazy_gettext("A payment attempt has had no outcome for %(duration)s."),
    ProblemKind.TOPIC_MISSING: lazy_gettext("The topic %(subject)s does not exist."),
    ProblemKind.GROUP_STALLED: lazy_gettext(
        "%(subject)s is stalled: %(count)s records wait and none is processed."
    ),
    ProblemKind.GROUP_WITHOUT_MEMBERS: lazy_gettext("%(subject)s has no consumers: %(count)s records wait."),
    ProblemKind.GROUP_BEHIND: lazy_gettext("%(subject)s is behind by %(duration)s: %(count)s records wait."),
    ProblemKind.RETRIES_LATE: lazy_gettext("Retries in %(subject)s are %(duration)s late."),
    ProblemKind.LOW_SUCCESS_RATE: lazy_gettext(
        "Few payments succeed: %(count)s of %(subject)s attempts in the last hour."
    ),
}


def problem_url(problem: Problem) -> str | None:
    """Return the page that shows more about the problem, or None."""
    if problem.kind in _GROUP_KINDS:
        return url_for("topics.show", name=_TOPIC_OF_GROUP.get(problem.subject, problem.subject))
    endpoint = _ENDPOINTS.get(problem.kind)
    return url_for(endpoint) if endpoint else None


_TOPIC_OF_GROUP = {topic.group: topic.name for topic in ALL_TOPICS if topic.group}
_ENDPOINTS = {
    ProblemKind.KAFKA_UNAVAILABLE: "topics.listing",
    ProblemKind.OUTBOX_OLD: "topics.listing",
    ProblemKind.INTAKE_LATE: "topics.listing",
    ProblemKind.DELIVERIES_OVERDUE: "topics.listing",
    ProblemKind.DEAD_LETTERS: "dead_letters.listing",
    ProblemKind.DELIVERIES_EXHAUSTED: "exhausted_deliveries.listing",
    ProblemKind.ATTEMPT_STUCK: "attempts.listing",
    ProblemKind.UNDECIDED: "attempts.listing",
    ProblemKind.DUPLICATES: "attempts.listing",
    ProblemKind.LOW_SUCCESS_RATE: "attempts.listing",
    ProblemKind.ENDPOINTS_FAILING: "applications.listing",
}


def runbook_url(problem: Problem) -> str:
    """Return the page of the documentation that says what to do. It is in English only."""
    is_slow = problem.kind is ProblemKind.GROUP_BEHIND and problem.subject == WEBHOOKS_SLOW.group
    return f"/docs/en/operations/{'alerts/SlowPipelineLag/' if is_slow else RUNBOOKS[problem.kind]}"


RUNBOOKS = {
    ProblemKind.DATABASE_UNAVAILABLE: "outages/#postgresql-does-not-answer",
    ProblemKind.KAFKA_UNAVAILABLE: "outages/#kafka-does-not-answer",
    ProblemKind.SERVICE_DOWN: "alerts/ServiceDown/",
    ProblemKind.SERVICE_NOT_READY: "alerts/ServiceNotReady/",
    ProblemKind.OUTBOX_OLD: "alerts/OutboxOld/",
    ProblemKind.INTAKE_LATE: "alerts/WebhookIntakeLate/",
    ProblemKind.DELIVERIES_OVERDUE: "alerts/DeliveryOverdue/",
    ProblemKind.EXPIRY_LATE: "alerts/ExpiryLate/",
    ProblemKind.ATTEMPT_STUCK: "alerts/AttemptStuck/",
    ProblemKind.TOPIC_MISSING: "outages/#a-topic-is-missing",
    ProblemKind.GROUP_STALLED: "alerts/ConsumerStalled/",
    ProblemKind.GROUP_WITHOUT_MEMBERS: "alerts/ConsumerUnattended/",
    ProblemKind.GROUP_BEHIND: "alerts/ConsumerLag/",
    ProblemKind.RETRIES_LATE: "alerts/RetriesLate/",
    ProblemKind.DEAD_LETTERS: "alerts/DeadLetters/",
    ProblemKind.DELIVERIES_EXHAUSTED: "alerts/DeliveriesExhausted/",
    ProblemKind.UNDECIDED: "alerts/AttemptsUndecided/",
    ProblemKind.DUPLICATES: "alerts/DuplicatePayments/",
    ProblemKind.ENDPOINTS_FAILING: "alerts/EndpointFailing/",
    ProblemKind.LOW_SUCCESS_RATE: "alerts/NoPaymentSucceeds/",
}
