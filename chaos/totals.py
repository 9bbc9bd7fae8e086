"""The file in which the figures of all runs add up."""

import json
from collections.abc import Mapping
from pathlib import Path

_SUMMED = (
    "seconds", "creates", "payments", "charges", "deliveries", "receipts", "repeats",
    "lost", "doubled", "stuck", "findings",
)  # fmt: skip


def add_run(path: Path, run: Mapping[str, object]) -> None:
    """Append a run, as the judge counts it, to the file, and add all up. The file is created if it is missing."""
    known = json.loads(path.read_text()) if path.exists() else {"runs": []}
    runs = [*known["runs"], run]
    totals = {
        "runs": len(runs),
        "faults": sum(sum(each["faults"].values()) for each in runs),
        **{name: sum(each[name] for each in runs) for name in _SUMMED},
    }
    path.write_text(json.dumps({"totals": totals, "runs": runs}, indent=2) + "\n")
