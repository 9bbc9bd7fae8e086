"""The file in which the totals of all runs accumulate. Pure but for reading and writing it."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from chaos.history import CreateAnswered, FaultBegan, Record, RunStarted, WebhookReceived

_CREATED = 201


@dataclass(frozen=True)
class RunTotals:
    seed: int
    seconds: int
    brokers: int
    commit: str
    faults: int
    payments: int
    """Intents that were acknowledged with 201."""
    deliveries: int
    """Requests at the receivers."""
    judge_status: int
    """The exit status of the judge: 0 if it found nothing."""
    faults_by_kind: dict[str, int]


def count_run(records: Iterable[Record], judge_status: int) -> RunTotals:
    """Return the totals of a history. Raises ValueError if it has no beginning."""
    started: RunStarted | None = None
    kinds: Counter[str] = Counter()
    payments = deliveries = 0
    for record in records:
        if isinstance(record, RunStarted):
            started = record
        elif isinstance(record, FaultBegan):
            kinds[record.fault] += 1
        elif isinstance(record, CreateAnswered):
            payments += record.http_status == _CREATED
        elif isinstance(record, WebhookReceived):
            deliveries += 1
    if started is None:
        raise ValueError("the history has no RunStarted")
    return RunTotals(
        seed=started.seed,
        seconds=started.seconds,
        brokers=started.brokers,
        commit=started.commit,
        faults=kinds.total(),
        payments=payments,
        deliveries=deliveries,
        judge_status=judge_status,
        faults_by_kind=dict(sorted(kinds.items())),
    )


def add_run(path: Path, run: RunTotals) -> None:
    """Append a run to the file, and add it up. The file is created if it is missing."""
    known = json.loads(path.read_text()) if path.exists() else {"runs": []}
    runs = [*known["runs"], asdict(run)]
    summed = ("seconds", "faults", "payments", "deliveries")
    totals = {name: sum(each[name] for each in runs) for name in summed}
    totals["runs_with_findings"] = sum(each["judge_status"] != 0 for each in runs)
    path.write_text(json.dumps({"totals": totals, "runs": runs}, indent=2) + "\n")
