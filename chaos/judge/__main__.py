"""`python -m chaos.judge HISTORY`: prints the verdict. Ends with 1 if there is a finding, 2 if it cannot judge."""

import sys
from collections import Counter
from pathlib import Path

from chaos.history import read_history
from chaos.judge.verdict import STATEMENTS, Verdict, judge

_SHOWN = 20


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m chaos.judge HISTORY", file=sys.stderr)
        return 2
    try:
        verdict = judge(read_history(Path(arguments[0])))
    except (OSError, ValueError) as error:
        print(f"cannot judge: {error}", file=sys.stderr)
        return 2
    print("\n".join(format_verdict(verdict)))
    if not verdict.is_complete:
        return 2
    return 1 if verdict.findings else 0


def format_verdict(verdict: Verdict) -> list[str]:
    """Return the lines of the report."""
    totals = verdict.totals
    by_rule = Counter(finding.rule for finding in verdict.findings)
    faults = ", ".join(f"{kind} {count}" for kind, count in totals.faults.items())
    return [
        f"seed {totals.seed}, {totals.seconds} s, commit {totals.commit}, {verdict.run.records} records",
        f"faults      {sum(totals.faults.values()):>8}  {faults}",
        f"creates     {totals.creates:>8}  acknowledged with 201, of {len(verdict.run.creates)} requests",
        f"payments    {totals.payments:>8}  forms sent; {totals.charges} charges at the bank",
        f"intents     {len(verdict.run.intents):>8}  {totals.succeeded} succeeded, {totals.canceled} canceled",
        f"deliveries  {totals.deliveries:>8}  {totals.receipts} requests received, {totals.repeats} of them repeats",
        *(f"note: {note}" for note in verdict.notes),
        "",
        *(f"{by_rule[name]:>6}  {name}: {statement}" for name, statement in STATEMENTS.items()),
        "",
        *(f"{finding.rule}: {finding.subject}: {finding.sentence}" for finding in verdict.findings[:_SHOWN]),
        *_result(verdict),
    ]


def _result(verdict: Verdict) -> list[str]:
    more = len(verdict.findings) - _SHOWN
    lines = [f"and {more} more findings"] if more > 0 else []
    if not verdict.is_complete:
        return [*lines, f"INCOMPLETE: the history lacks {', '.join(verdict.missing)}"]
    if verdict.findings:
        totals = verdict.totals
        return [
            *lines,
            f"FAILED: {totals.findings} findings; lost {totals.lost}, doubled {totals.doubled}, stuck {totals.stuck}",
        ]
    return ["PASSED: no findings"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
