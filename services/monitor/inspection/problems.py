"""The problems that the monitor can report, their severity, and the thresholds that trigger them."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Seconds, where nothing else is said."""

    lag_s: float = 60.0
    outbox_s: float = 30.0
    retry_late_s: float = 30.0
    attempt_s: float = 300.0
    expiry_late_s: float = 60.0
    not_taken_in_s: float = 300.0
    overdue_s: float = 900.0
    decided_at_least: int = 20
    """Attempts in an hour: fewer tell nothing of how many are paid."""
    paid_at_least: float = 0.25
    """Of the attempts that were decided."""


class Level(IntEnum):
    """How an answer stands. Quiet is neither good nor bad: at night nobody pays."""

    QUIET = 0
    GOOD = 1
    WORRYING = 2
    BAD = 3


class Question(StrEnum):
    MONEY = "money"
    WEBHOOKS = "webhooks"
    STUCK = "stuck"


class Kind(StrEnum):
    """What causes others comes first."""

    DATABASE_AWAY = "database_away"
    KAFKA_AWAY = "kafka_away"
    SERVICE_DOWN = "service_down"
    SERVICE_NOT_READY = "service_not_ready"
    OUTBOX_WAITS = "outbox_waits"
    NOT_TAKEN_IN = "not_taken_in"
    DELIVERIES_OVERDUE = "deliveries_overdue"
    EXPIRY_LATE = "expiry_late"
    ATTEMPT_STUCK = "attempt_stuck"
    TOPIC_MISSING = "topic_missing"
    GROUP_STALLED = "group_stalled"
    GROUP_UNATTENDED = "group_unattended"
    GROUP_BEHIND = "group_behind"
    RETRIES_LATE = "retries_late"
    DEAD_LETTERS = "dead_letters"
    DELIVERIES_EXHAUSTED = "deliveries_exhausted"
    UNDECIDED = "undecided"
    DUPLICATES = "duplicates"
    ENDPOINTS_FAILING = "endpoints_failing"
    FEW_PAID = "few_paid"


@dataclass(frozen=True, slots=True)
class Trouble:
    kind: Kind
    level: Level
    questions: frozenset[Question]
    subject: str = ""
    """The service, the topic or the group that it is about."""
    count: int = 0
    seconds: float = 0.0
    reasons: tuple[str, ...] = ()
    """In others' words, which may be anything."""


@dataclass(frozen=True, slots=True)
class Answer:
    question: Question
    level: Level
    troubles: tuple[Trouble, ...]
    """Worst first."""
    is_known: bool = True
    """False while nothing was seen yet that could answer it."""
