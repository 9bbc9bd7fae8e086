"""What must always hold, by name, and what was found where it does not. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

MOST_FINDINGS = 1000
"""Of one check; how many there are in all is counted."""


class Kind(StrEnum):
    LOST = "lost"
    DOUBLED = "doubled"
    STUCK = "stuck"


class Rows(StrEnum):
    """What there is to look at."""

    INTENTS = "intents"
    ATTEMPTS = "attempts"
    EVENTS = "events"
    OUTBOX = "outbox"
    DELIVERIES = "deliveries"
    TRIES = "tries"
    CHARGES = "charges"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    kind: Kind
    """What it is called when it does not hold."""
    rows: Rows
    says: str


_ALL = (
    Check("events_complete", Kind.LOST, Rows.EVENTS, "every change of an intent has its event"),
    Check("events_once", Kind.DOUBLED, Rows.EVENTS, "no change of an intent has two events"),
    Check("events_of_intents", Kind.LOST, Rows.EVENTS, "every event is of an intent that is there"),
    Check("events_fit_status", Kind.LOST, Rows.INTENTS, "an intent's last event tells its status"),
    Check("events_in_order", Kind.LOST, Rows.EVENTS, "events follow each other as the states allow"),
    Check("succeeded_is_paid", Kind.LOST, Rows.INTENTS, "a succeeded intent has a paid attempt"),
    Check("paid_is_succeeded", Kind.LOST, Rows.ATTEMPTS, "the intent of a paid attempt is succeeded"),
    Check("paid_once", Kind.DOUBLED, Rows.ATTEMPTS, "an intent has one paid attempt at most"),
    Check("one_open_attempt", Kind.DOUBLED, Rows.ATTEMPTS, "an intent has one open attempt at most"),
    Check("processing_has_attempt", Kind.STUCK, Rows.INTENTS, "a processing intent has an attempt under way"),
    Check(
        "attempt_is_processing",
        Kind.STUCK,
        Rows.ATTEMPTS,
        "with an attempt under way, an intent is processing",
    ),
    Check(
        "events_delivered", Kind.LOST, Rows.EVENTS, "what was taken in while there was a URL has a delivery"
    ),
    Check("delivery_has_event", Kind.LOST, Rows.DELIVERIES, "a delivery tells of an event that was taken in"),
    Check("deliveries_once", Kind.DOUBLED, Rows.DELIVERIES, "an event has one delivery at most"),
    Check("tries_complete", Kind.LOST, Rows.TRIES, "every try that a delivery counts is written down"),
    Check("tries_once", Kind.DOUBLED, Rows.TRIES, "no try and no step of a delivery is there twice"),
    Check("delivery_fits_tries", Kind.LOST, Rows.DELIVERIES, "a delivery's status follows from its tries"),
    Check("intents_expire", Kind.STUCK, Rows.INTENTS, "unpaid intents are canceled within a minute"),
    Check("attempts_asked", Kind.STUCK, Rows.ATTEMPTS, "providers are asked about attempts within 5 minutes"),
    Check("outbox_leaves", Kind.STUCK, Rows.OUTBOX, "the outbox is published within 5 minutes"),
    Check("events_taken_in", Kind.STUCK, Rows.EVENTS, "the webhooks take events in within 30 minutes"),
    Check("deliveries_tried", Kind.STUCK, Rows.DELIVERIES, "due deliveries are tried within 30 minutes"),
    Check(
        "charges_known", Kind.LOST, Rows.CHARGES, "every charge paid at the sandbox is of an attempt of ours"
    ),
    Check("charges_paid", Kind.LOST, Rows.CHARGES, "what is paid at the sandbox is paid here"),
    Check("payments_charged", Kind.LOST, Rows.CHARGES, "what is paid here is paid at the sandbox"),
    Check("charges_fit", Kind.LOST, Rows.CHARGES, "the sandbox has charged the right amount and intent"),
    Check("charges_once", Kind.DOUBLED, Rows.CHARGES, "an attempt is charged once at the sandbox"),
)
CHECKS = {check.name: check for check in _ALL}


@dataclass(frozen=True, slots=True)
class Finding:
    check: Check
    id: str
    """Of the intent, the attempt, the event, which is its delivery too, or the outbox row that it is about."""
    detail: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a look has found: the first few of each check, and how many there are."""

    findings: Sequence[Finding] = ()
    totals: dict[str, int] = field(default_factory=dict)

    def and_also(self, other: "Found") -> "Found":
        """Of other checks."""
        return Found([*self.findings, *other.findings], {**self.totals, **other.totals})


def found(findings: Iterable[Finding]) -> Found:
    """All there is: as many as are kept, and their number."""
    kept: list[Finding] = []
    totals: dict[str, int] = {}
    for finding in findings:
        name = finding.check.name
        totals[name] = totals.get(name, 0) + 1
        if totals[name] <= MOST_FINDINGS:
            kept.append(finding)
    return Found(kept, totals)
