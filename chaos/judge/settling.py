"""Rules about the end of a run: the system settles in time, its outbox is empty, and `mizan audit` agrees."""

from collections.abc import Iterator, Mapping, Sequence

from chaos.judge.rules import Breach, Damage, Finding, Rule, RuleTable, clock_time
from chaos.judge.run import Run

TABLE = RuleTable()

_CHECK_SECONDS = 10.0
"""The runner looks whether everything has settled every few seconds."""


@TABLE.add(Damage.STUCK, needs_end=True)
def settles_in_time(run: Run) -> Iterator[Breach]:
    """After faults and load have stopped, everything settles within the stated time."""
    if run.settling is None or run.load_stopped is None or not run.started:
        return
    took = run.settling.at - run.load_stopped.at
    if not run.settling.settled:
        waits = ", ".join(run.settling.waits_for) or "nothing it names"
        yield "settling", f"at {clock_time(run.settling.at)}, after {took:.0f} s, it still waits for {waits}"
    elif took > run.started[0].settle_seconds + _CHECK_SECONDS:
        yield "settling", f"it took {took:.0f} s, until {clock_time(run.settling.at)}"


@TABLE.add(Damage.STUCK, needs_end=True)
def outbox_is_empty(run: Run) -> Iterator[Breach]:
    """After settling, the outbox is empty."""
    for outbox in run.outboxes:
        if outbox.rows:
            yield "outbox", f"it has {outbox.rows} rows at {clock_time(outbox.at)}"


@TABLE.add(Damage.WRONG, needs_end=True)
def audit_finds_nothing(run: Run) -> Iterator[Breach]:
    """`mizan audit` finds nothing after settling."""
    if run.audit is None:
        return
    for finding in run.audit.findings:
        yield "audit", f"at {clock_time(run.audit.at)} it reports: {finding}"
    if run.audit.exit_status and not run.audit.findings:
        yield "audit", f"at {clock_time(run.audit.at)} it ended with status {run.audit.exit_status}"


AUDIT_AGREES = "audit-finds-what-the-judge-finds"
AUDIT_STATEMENT = "What the judge finds in the stores, `mizan audit` finds too."


def audit_disagreements(
    run: Run, rules: Mapping[str, Rule], findings: Sequence[Finding]
) -> Iterator[Finding]:
    """Yield each rule with findings that a clean audit should have found."""
    if run.audit is None or run.audit.exit_status or run.audit.findings:
        return
    seen = {finding.rule: finding for finding in findings if rules[finding.rule].audited}
    for name in seen:
        sentence = f"it found nothing at {clock_time(run.audit.at)}, but the judge found: {name}"
        yield Finding(AUDIT_AGREES, "audit", sentence)
