"""The report of `mizan audit`: a table of the checks with examples for people, or JSON for programs."""

import json
from collections import Counter
from collections.abc import Iterator

import click

from mizan.output import show_table
from mizan.reconciliation.checks import CHECKS, Check, FaultKind, Finding, RowKind
from mizan.reconciliation.reconciler import ReconciliationResult

_EXAMPLES = 10


def show_json(result: ReconciliationResult) -> None:
    report = {
        "ok": result.ok,
        "checked": result.checked,
        "findings": [_as_json(finding) for finding in result.found.findings],
        "totals": result.found.totals,
        "waiting": result.waiting,
        "not_checked": result.not_checked,
    }
    click.echo(json.dumps(report))


def show_text(result: ReconciliationResult) -> None:
    show_table([_row(check, result) for check in _performed_checks(result)], as_json=False, empty="")
    for name, total in result.found.totals.items():
        _show_examples(CHECKS[name], total, result)
    waiting = {what: number for what, number in result.waiting.items() if number}
    if waiting:
        listed = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in waiting.items())
        click.echo(f"\nWaiting, but not overdue: {listed}.")
    click.echo(f"\n{_verdict(result)}")


def _performed_checks(result: ReconciliationResult) -> Iterator[Check]:
    """Return the checks that were performed."""
    return (check for check in CHECKS.values() if check.row_kind in result.checked)


def _row(check: Check, result: ReconciliationResult) -> dict[str, object]:
    rows = "outbox rows" if check.row_kind is RowKind.OUTBOX else check.row_kind
    return {
        "check": check.name,
        "statement": check.statement,
        "checked": f"{result.checked[check.row_kind]} {rows}",
        "faults": result.found.totals.get(check.name, 0),
    }


def _show_examples(check: Check, total: int, result: ReconciliationResult) -> None:
    click.echo(f"\n{check.kind}: it does not hold that {check.statement} ({total}):")
    of_check = [finding for finding in result.found.findings if finding.check is check]
    for finding in of_check[:_EXAMPLES]:
        click.echo(f"  {finding.id}  {finding.detail}")
    if total > _EXAMPLES:
        click.echo(f"  and {total - _EXAMPLES} more")


def _verdict(result: ReconciliationResult) -> str:
    totals = Counter(dict.fromkeys(FaultKind, 0))
    for name, total in result.found.totals.items():
        totals[CHECKS[name].kind] += total
    if totals.total():
        return "Found: " + ", ".join(f"{number} {kind}" for kind, number in totals.items() if number) + "."
    if result.not_checked is not None:
        return f"Nothing found, but not everything was checked: {result.not_checked}."
    return "Nothing is lost, doubled or stuck."


def _as_json(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check.name,
        "what": finding.check.kind,
        "id": finding.id,
        "detail": finding.detail,
    }
