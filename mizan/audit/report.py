"""What the audit says: a table of the checks with examples for people, all of it as JSON for programs."""

import json
from collections import Counter
from collections.abc import Iterator

import click

from mizan.audit.checks import CHECKS, Check, Finding, Kind, Rows
from mizan.audit.looking import Audited
from mizan.output import show_table

_EXAMPLES = 10


def show_json(audited: Audited) -> None:
    said = {
        "ok": audited.ok,
        "checked": audited.checked,
        "findings": [_as_json(finding) for finding in audited.found.findings],
        "totals": audited.found.totals,
        "waiting": audited.waiting,
        "not_checked": audited.not_checked,
    }
    click.echo(json.dumps(said))


def show_text(audited: Audited) -> None:
    show_table([_row(check, audited) for check in _made(audited)], as_json=False, empty="")
    for name, total in audited.found.totals.items():
        _show_examples(CHECKS[name], total, audited)
    waiting = {what: number for what, number in audited.waiting.items() if number}
    if waiting:
        told = ", ".join(f"{number} {what.replace('_', ' ')}" for what, number in waiting.items())
        click.echo(f"\nWaiting, as they may: {told}.")
    click.echo(f"\n{_verdict(audited)}")


def _made(audited: Audited) -> Iterator[Check]:
    """Those that could be made."""
    return (check for check in CHECKS.values() if check.rows in audited.checked)


def _row(check: Check, audited: Audited) -> dict[str, object]:
    return {
        "check": check.name,
        "says that": check.says,
        "looked at": f"{audited.checked[check.rows]} {check.rows if check.rows is not Rows.OUTBOX else 'outbox rows'}",
        "wrong": audited.found.totals.get(check.name, 0),
    }


def _show_examples(check: Check, total: int, audited: Audited) -> None:
    click.echo(f"\n{check.kind}: not true that {check.says} ({total}):")
    of_check = [finding for finding in audited.found.findings if finding.check is check]
    for finding in of_check[:_EXAMPLES]:
        click.echo(f"  {finding.id}  {finding.detail}")
    if total > _EXAMPLES:
        click.echo(f"  and {total - _EXAMPLES} more")


def _verdict(audited: Audited) -> str:
    totals = Counter(dict.fromkeys(Kind, 0))
    for name, total in audited.found.totals.items():
        totals[CHECKS[name].kind] += total
    if totals.total():
        return "Found: " + ", ".join(f"{number} {kind}" for kind, number in totals.items() if number) + "."
    if audited.not_checked is not None:
        return f"Nothing found, but not all was looked at: {audited.not_checked}."
    return "Nothing is lost, doubled or stuck."


def _as_json(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check.name,
        "what": finding.check.kind,
        "id": finding.id,
        "detail": finding.detail,
    }
