"""The checks of `mizan audit` by name, the findings where one fails, and how they are found and re-checked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from time import sleep
from typing import Any

from psycopg import Connection

MAX_FINDINGS = 1000
"""The most findings kept of one check; the total is counted as well."""


class FaultKind(StrEnum):
    LOST = "lost"
    DOUBLED = "doubled"
    STUCK = "stuck"


class RowKind(StrEnum):
    """What a check goes through."""

    INTENTS = "intents"
    ATTEMPTS = "attempts"
    EVENTS = "events"
    OUTBOX = "outbox"
    DELIVERIES = "deliveries"
    TRIES = "tries"
    CHARGES = "charges"
    CONSUMERS = "consumer groups"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    kind: FaultKind
    """What a finding of this check is."""
    row_kind: RowKind
    statement: str
    """What holds if the check passes."""


_ALL = (
    Check("events_complete", FaultKind.LOST, RowKind.EVENTS, "every change of an intent has its event"),
    Check("events_once", FaultKind.DOUBLED, RowKind.EVENTS, "no change of an intent has two events"),
    Check("events_of_intents", FaultKind.LOST, RowKind.EVENTS, "every event belongs to an existing intent"),
    Check("events_fit_status", FaultKind.LOST, RowKind.INTENTS, "an intent's last event matches its status"),
    Check("events_in_order", FaultKind.LOST, RowKind.EVENTS, "events follow each other as the states allow"),
    Check("succeeded_is_paid", FaultKind.LOST, RowKind.INTENTS, "a succeeded intent has a paid attempt"),
    Check("paid_is_succeeded", FaultKind.LOST, RowKind.ATTEMPTS, "the intent of a paid attempt is succeeded"),
    Check("paid_once", FaultKind.DOUBLED, RowKind.ATTEMPTS, "an intent has one paid attempt at most"),
    Check("one_open_attempt", FaultKind.DOUBLED, RowKind.ATTEMPTS, "an intent has one open attempt at most"),
    Check(
        "processing_has_attempt",
        FaultKind.STUCK,
        RowKind.INTENTS,
        "a processing intent has an attempt under way",
    ),
    Check(
        "attempt_is_processing",
        FaultKind.STUCK,
        RowKind.ATTEMPTS,
        "with an attempt under way, an intent is processing",
    ),
    Check(
        "events_delivered",
        FaultKind.LOST,
        RowKind.EVENTS,
        "events taken in while a URL was set have a delivery",
    ),
    Check(
        "delivery_has_event",
        FaultKind.LOST,
        RowKind.DELIVERIES,
        "every delivery belongs to an event that was taken in",
    ),
    Check("deliveries_once", FaultKind.DOUBLED, RowKind.DELIVERIES, "an event has one delivery at most"),
    Check("tries_complete", FaultKind.LOST, RowKind.TRIES, "every try that a delivery counts is recorded"),
    Check("tries_once", FaultKind.DOUBLED, RowKind.TRIES, "no try or step of a delivery is recorded twice"),
    Check(
        "delivery_fits_tries",
        FaultKind.LOST,
        RowKind.DELIVERIES,
        "a delivery's status follows from its tries",
    ),
    Check("intents_expire", FaultKind.STUCK, RowKind.INTENTS, "unpaid intents are canceled within a minute"),
    Check(
        "attempts_asked",
        FaultKind.STUCK,
        RowKind.ATTEMPTS,
        "providers are asked about attempts within 5 minutes",
    ),
    Check("outbox_leaves", FaultKind.STUCK, RowKind.OUTBOX, "the outbox is published within 5 minutes"),
    Check("events_taken_in", FaultKind.STUCK, RowKind.EVENTS, "events are taken in within 30 minutes"),
    Check(
        "deliveries_tried", FaultKind.STUCK, RowKind.DELIVERIES, "due deliveries are tried within 30 minutes"
    ),
    Check(
        "charges_known",
        FaultKind.LOST,
        RowKind.CHARGES,
        "every charge at the sandbox belongs to a known attempt",
    ),
    Check("charges_paid", FaultKind.LOST, RowKind.CHARGES, "what is paid at the sandbox is recorded as paid"),
    Check("payments_charged", FaultKind.LOST, RowKind.CHARGES, "every paid attempt is paid at the sandbox"),
    Check(
        "charges_fit", FaultKind.LOST, RowKind.CHARGES, "a charge has the amount and intent of its attempt"
    ),
    Check("charges_once", FaultKind.DOUBLED, RowKind.CHARGES, "an attempt is charged once at the sandbox"),
    Check("consumers_alive", FaultKind.STUCK, RowKind.CONSUMERS, "every consumer group has a member"),
)
CHECKS = {check.name: check for check in _ALL}


@dataclass(frozen=True, slots=True)
class Finding:
    check: Check
    id: str
    """The id of the intent, attempt, event or outbox row. A delivery has the id of its event."""
    detail: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The first findings of each check, and the total of each."""

    findings: Sequence[Finding] = ()
    totals: dict[str, int] = field(default_factory=dict)

    def merge(self, other: "Findings") -> "Findings":
        """Return both; `other` has other checks."""
        return Findings([*self.findings, *other.findings], {**self.totals, **other.totals})


def collect_findings(findings: Iterable[Finding]) -> Findings:
    """Count all findings, and keep the first MAX_FINDINGS of each check."""
    kept: list[Finding] = []
    totals: dict[str, int] = {}
    for finding in findings:
        name = finding.check.name
        totals[name] = totals.get(name, 0) + 1
        if totals[name] <= MAX_FINDINGS:
            kept.append(finding)
    return Findings(kept, totals)


_LIMIT_FAULTS = """
select name, id, detail, total
from (select name, id, detail, count(*) over (partition by name) as total,
             row_number() over (partition by name order by id) as number
      from ({0}) as faults where name is not null) as counted
where number <= {1}
order by name, number"""


def find_faults(
    connection: Connection[Any], faults: str, values: Mapping[str, object] | None = None
) -> Findings:
    """Run the query `faults`, which returns the name of the failed check (or null), an id and a detail, all as text."""
    statement = _LIMIT_FAULTS.format(faults, MAX_FINDINGS)
    rows = connection.execute(statement.encode(), values).fetchall()
    return Findings(
        [Finding(CHECKS[name], id_, detail) for name, id_, detail, _ in rows],
        {name: total for name, _, _, total in rows},
    )


RECHECK_DELAYS_S = (1.0, 2.0, 4.0)

ReportProgress = Callable[[str], None]
"""Called with what is checked next, to be shown to a person."""


def recheck_until_settled(
    suspected: Findings, recheck: Callable[[Findings], Findings], report_progress: ReportProgress
) -> Findings:
    """Re-check findings that may only have been in progress. Return those that remain after some seconds."""
    for pause_s in RECHECK_DELAYS_S:
        if not suspected.findings:
            break
        report_progress("findings that may be work in progress, again")
        sleep(pause_s)
        suspected = recheck(suspected)
    return suspected


def keep_persistent(before: Findings, now: Findings) -> Findings:
    """Return the findings of `now` that were also found before.

    Of a check that had more findings than were kept, all findings of `now` count.
    """
    known = {(finding.check.name, finding.id) for finding in before.findings}
    cut = {name for name, total in before.totals.items() if total > MAX_FINDINGS}
    kept = [
        finding
        for finding in now.findings
        if finding.check.name in cut or (finding.check.name, finding.id) in known
    ]
    totals = collect_findings(kept).totals
    return Findings(
        kept, {name: now.totals[name] if name in cut else total for name, total in totals.items()}
    )
