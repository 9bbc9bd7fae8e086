"""The report of `mizan audit`: a table of the checks with examples for people, or JSON for programs."""

import json
from collections import Counter
from collections.abc import Iterator

import click

from mizan.output import echo_rows
from mizan.reconciliation.checks import CHECKS, Check, FaultKind, Finding, RowKind
from mizan.reconciliation.reconciler import ReconciliationResult

_EXAMPLES = 10
_LEFT_OUT = (
    "Too recent to be checked: intents that expired within the last minute, outbox rows and inquiries of the "
    "last 5 minutes, events and due deliveries of the last 30 minutes."
)
_NAMES = {
    RowKind.INTENTS: ("intent", "intents"),
    RowKind.ATTEMPTS: ("attempt", "attempts"),
    RowKind.EVENTS: ("event", "events"),
    RowKind.OUTBOX: ("outbox row", "outbox rows"),
    RowKind.DELIVERIES: ("delivery", "deliveries"),
    RowKind.TRIES: ("try", "tries"),
    RowKind.CHARGES: ("charge", "charges"),
    RowKind.CONSUMERS: ("consumer group", "consumer groups"),
    "outbox_rows": ("outbox row", "outbox rows"),
    "events_not_taken_in": ("event not taken in", "events not taken in"),
    "deliveries_pending": ("delivery pending", "deliveries pending"),
    "deliveries_paused": ("delivery paused", "deliveries paused"),
    "attempts_under_way": ("attempt in progress", "attempts in progress"),
    "attempts_undecided": ("attempt undecided", "attempts undecided"),
    "attempts_left_on_a_page": ("attempt left on a provider's page", "attempts left on a provider's page"),
    "decisions_to_approve": ("decision to approve", "decisions to approve"),
    "duplicate_payments": ("duplicate payment", "duplicate payments"),
}
"""What is counted: one of it, and several."""


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
    click.echo(f"Checked: {', '.join(_count(kind, number) for kind, number in result.checked.items())}.")
    click.echo(_LEFT_OUT)
    pending = [_count(what, number) for what, number in result.waiting.items() if number]
    click.echo(f"Pending (normal): {', '.join(pending) or 'nothing'}.")
    click.echo(f"Consumers: {_describe_consumers(result)}.\n")
    echo_rows([_row(check, result) for check in _performed_checks(result)])
    for name, total in result.found.totals.items():
        _show_examples(CHECKS[name], total, result)
    click.echo(f"\n{_verdict(result)}")


def _count(what: str, number: int) -> str:
    one, many = _NAMES[what]
    return f"{number:,} {one if number == 1 else many}"


def _describe_consumers(result: ReconciliationResult) -> str:
    groups = result.checked.get(RowKind.CONSUMERS)
    if groups is None:
        return "not checked"
    without = result.found.totals.get("consumers_alive", 0)
    if without:
        return f"{without} of {groups} groups have no member, see below"
    return f"all {groups} groups have a member (one that froze within the last 15 seconds still counts)"


def _performed_checks(result: ReconciliationResult) -> Iterator[Check]:
    """Return the checks that were performed."""
    return (check for check in CHECKS.values() if check.row_kind in result.checked)


def _row(check: Check, result: ReconciliationResult) -> dict[str, object]:
    return {
        "check": check.name,
        "statement": check.statement,
        "checked": _count(check.row_kind, result.checked[check.row_kind]),
        "faults": result.found.totals.get(check.name, 0),
    }


def _show_examples(check: Check, total: int, result: ReconciliationResult) -> None:
    click.echo(f"\n{check.kind} ({total}), against the rule that {check.statement}:")
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
    where = "" if RowKind.CONSUMERS in result.checked else " in the database"
    return f"Nothing is lost, doubled or stuck{where}."


def _as_json(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check.name,
        "what": finding.check.kind,
        "id": finding.id,
        "detail": finding.detail,
    }
