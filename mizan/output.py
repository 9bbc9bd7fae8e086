"""What a command prints: JSON for programs, aligned columns for people."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def show_values(values: Mapping[str, Any], *, as_json: bool, note: str) -> None:
    """Print one object: as JSON, or one line for each value and then the note."""
    if as_json:
        click.echo(json.dumps(values, default=_plain))
        return
    _echo_aligned([(name, _cell(value)) for name, value in values.items()])
    click.echo(note)


def show_table(rows: Sequence[Mapping[str, Any]], *, as_json: bool, empty: str) -> None:
    """Print several objects: as JSON, or as a table with a header."""
    if as_json:
        click.echo(json.dumps(rows, default=_plain))
    elif rows:
        _echo_aligned([tuple(rows[0]), *(tuple(map(_cell, row.values())) for row in rows)])
    else:
        click.echo(empty)


def timestamp(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _echo_aligned(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("  ".join(map(str.ljust, line, widths)).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return ",".join(value) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _plain(value: object) -> str:
    return str(value)
