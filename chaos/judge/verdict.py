"""The verdict about a history: all rules, what they found, and the figures of the run."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

from chaos.history import FaultBegan, Record
from chaos.judge import charges, deliveries, intents, settling, states, webhooks
from chaos.judge.deliveries import all_repeats, follows_closed_connection
from chaos.judge.rules import Damage, Finding, Rule
from chaos.judge.run import Run, index_run
from chaos.judge.webhooks import may_be_unknown_secret

RULES: tuple[Rule, ...] = tuple(
    rule
    for module in (intents, states, charges, webhooks, deliveries, settling)
    for rule in module.TABLE.rules
)
_BY_NAME = {rule.name: rule for rule in RULES}
STATEMENTS = {rule.name: rule.statement for rule in RULES} | {settling.AUDIT_AGREES: settling.AUDIT_STATEMENT}


@dataclass(frozen=True, slots=True)
class Totals:
    """The figures of a run, for the file that adds them up."""

    seed: int
    seconds: int
    commit: str
    faults: dict[str, int]
    """By kind, without those that could not be made."""
    creates: int
    """Acknowledged with 201."""
    payments: int
    """How often customers sent the payment form."""
    succeeded: int
    canceled: int
    charges: int
    deliveries: int
    receipts: int
    repeats: int
    lost: int
    doubled: int
    stuck: int
    findings: int

    def as_json(self) -> dict[str, object]:
        return asdict(self)


class Verdict:
    """What the judge says about a run. `is_complete` is False if the run did not reach its end."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.missing = missing_parts(run)
        self.findings = list(_find(run, so_far=bool(self.missing)))

    @property
    def is_complete(self) -> bool:
        return not self.missing

    @cached_property
    def repeats(self) -> int:
        """Requests that are no recorded tries; 0 before the end, when tries are not known."""
        if not self.is_complete:
            return 0
        return sum(len(matched.repeats) for _, matched in all_repeats(self.run))

    def count(self, damage: Damage) -> int:
        return sum(
            1
            for finding in self.findings
            if finding.rule in _BY_NAME and _BY_NAME[finding.rule].damage is damage
        )

    @cached_property
    def totals(self) -> Totals:
        run = self.run
        started = run.started[0] if run.started else None
        final = Counter(intent.final.status for intent in run.intents.values() if intent.final is not None)
        return Totals(
            seed=started.seed if started else 0,
            seconds=started.seconds if started else 0,
            commit=started.commit if started else "",
            faults=dict(sorted(Counter(fault.fault for fault in _made(run)).items())),
            creates=sum(1 for create in run.creates if create.http_status == 201),
            payments=sum(1 for clicks in run.clicks.values() for click in clicks if click.click == "pay"),
            succeeded=final["succeeded"],
            canceled=final["canceled"],
            charges=sum(map(len, run.charges.values())),
            deliveries=len(run.deliveries),
            receipts=len(run.receipts),
            repeats=self.repeats,
            lost=self.count(Damage.LOST),
            doubled=self.count(Damage.DOUBLED),
            stuck=self.count(Damage.STUCK),
            findings=len(self.findings),
        )

    @property
    def notes(self) -> list[str]:
        """What is no finding, but worth knowing."""
        run = self.run
        notes = [
            f"fault {end.number} at {end.at:.0f}: {end.problem}"
            for end in run.ended
            if end.problem is not None
        ]
        closed = sum(
            1
            for id_, matched in all_repeats(run)
            for repeat in matched.repeats
            if self.is_complete and follows_closed_connection(run, id_, repeat)
        )
        if closed:
            notes.append(f"{closed} of the repeats came with a connection that the receiver closed")
        unverified = sum(1 for one in run.receipts if one.secret is None and may_be_unknown_secret(run, one))
        if unverified:
            notes.append(f"{unverified} signatures fit no known secret, after a roll whose answer was lost")
        failed = sum(1 for shown in run.deliveries.values() if shown.status == "failed")
        if failed:
            notes.append(f"{failed} deliveries failed after their last try")
        return notes


def judge(records: Iterable[Record]) -> Verdict:
    """Judge a history. Without its end, only what can be judged before the end is. Raises ValueError for nonsense."""
    return Verdict(index_run(records))


def summarise(records: Iterable[Record]) -> Totals:
    """Return the figures of a history, with the number of findings."""
    return judge(records).totals


def missing_parts(run: Run) -> list[str]:
    """Return what a complete history has and this one lacks."""
    parts = {
        "the start of the run": bool(run.started),
        "a create that was acknowledged": any(create.http_status == 201 for create in run.creates),
        "the end of the load": run.load_stopped is not None,
        "the end of settling": run.settling is not None,
        "the outbox after settling": bool(run.outboxes),
        "the end of `mizan audit`": run.audit is not None,
    }
    missing = [name for name, there in parts.items() if not there]
    return missing + (["one run only: there are several"] if len(run.started) > 1 else [])


def _find(run: Run, *, so_far: bool) -> Iterator[Finding]:
    findings = [
        Finding(rule.name, subject, sentence)
        for rule in RULES
        if not (so_far and rule.needs_end)
        for subject, sentence in rule.find(run)
    ]
    yield from findings
    if not so_far:
        yield from settling.audit_disagreements(run, _BY_NAME, findings)


def _made(run: Run) -> list[FaultBegan]:
    problems = {end.number for end in run.ended if end.problem is not None}
    return [fault for fault in run.began if fault.number not in problems]
