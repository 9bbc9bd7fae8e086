"""The problems that the monitor can report, their severity, and the thresholds that trigger them."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class HealthLevel(IntEnum):
    """IDLE is neither good nor bad: at night nobody pays."""

    IDLE = 0
    HEALTHY = 1
    WARNING = 2
    CRITICAL = 3


class HealthQuestion(StrEnum):
    """The questions that the overview answers."""

    PAYMENTS = "payments"
    WEBHOOKS = "webhooks"
    STUCK = "stuck"


class ProblemKind(StrEnum):
    """In the order in which problems are listed: causes first."""

    DATABASE_UNAVAILABLE = "database_unavailable"
    KAFKA_UNAVAILABLE = "kafka_unavailable"
    SERVICE_DOWN = "service_down"
    SERVICE_NOT_READY = "service_not_ready"
    OUTBOX_OLD = "outbox_old"
    INTAKE_LATE = "intake_late"
    DELIVERIES_OVERDUE = "deliveries_overdue"
    EXPIRY_LATE = "expiry_late"
    ATTEMPT_STUCK = "attempt_stuck"
    TOPIC_MISSING = "topic_missing"
    GROUP_STALLED = "group_stalled"
    GROUP_WITHOUT_MEMBERS = "group_without_members"
    GROUP_BEHIND = "group_behind"
    RETRIES_LATE = "retries_late"
    DEAD_LETTERS = "dead_letters"
    DELIVERIES_EXHAUSTED = "deliveries_exhausted"
    UNDECIDED = "undecided"
    DUPLICATES = "duplicates"
    ENDPOINTS_FAILING = "endpoints_failing"
    LOW_SUCCESS_RATE = "low_success_rate"


@dataclass(frozen=True, slots=True)
class Problem:
    kind: ProblemKind
    level: HealthLevel
    questions: frozenset[HealthQuestion]
    """The questions that this problem answers badly."""
    subject: str = ""
    """The service, topic or consumer group concerned."""
    count: int = 0
    seconds: float = 0.0
    reasons: tuple[str, ...] = ()
    """Error texts of others. They can contain anything."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    question: HealthQuestion
    level: HealthLevel
    problems: tuple[Problem, ...]
    """The most severe first."""
    is_known: bool = True
    """False as long as no poll has found what is needed to answer."""
