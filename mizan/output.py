"""What a command prints: JSON for programs, aligned columns for people."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from shared.platform.sanitize import sanitize_text

_NO_LIMIT = 10_000


class CommandGroup(click.Group):
    """A group whose help shows the first sentence of each command in full, in several lines if necessary."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(context, name)) for name in self.list_commands(context)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, one.get_short_help_str(_NO_LIMIT))
                    for name, one in commands
                    if one and not one.hidden
                ]
            )


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
other_users_option = click.option(
    "--other-users",
    is_flag=True,
    help="Kafka's users are not kept in the cluster itself: do not look for them.",
)


def show_values(values: Mapping[str, Any], *, as_json: bool, note: str) -> None:
    """Print one object: as JSON, or one line for each value and then the note."""
    if as_json:
        click.echo(json.dumps(values, default=_plain))
        return
    _echo_aligned([(name, _cell(value)) for name, value in values.items()])
    click.echo(note)


def show_table(rows: Sequence[Mapping[str, Any]], name: str, *, as_json: bool, empty: str) -> None:
    """Print several objects: as JSON, in a list with this name, or as a table with a header."""
    if as_json:
        click.echo(json.dumps({name: rows}, default=_plain))
    elif rows:
        echo_rows(rows)
    else:
        click.echo(empty)


def show_with_rows(
    values: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], name: str, *, as_json: bool
) -> None:
    """Print one object and the rows that belong to it; for people without the columns that are empty in all rows."""
    if as_json:
        click.echo(json.dumps({**values, name: rows}, default=_plain))
        return
    _echo_aligned([(key, _cell(value)) for key, value in values.items()])
    click.echo(f"\n{name}:")
    used = [key for key in (rows[0] if rows else ()) if any(row[key] not in (None, "") for row in rows)]
    if rows:
        echo_rows([{key: row[key] for key in used} for row in rows])
    else:
        click.echo("none")


def echo_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table with a header."""
    _echo_aligned([tuple(rows[0]), *(tuple(map(_cell, row.values())) for row in rows)])


def timestamp(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _echo_aligned(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("  ".join(map(str.ljust, line, widths)).rstrip())


def _cell(value: Any) -> str:
    """Return the value in one line. What strangers wrote, such as a reference, must not control the terminal."""
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return sanitize_text(json.dumps(value, ensure_ascii=False))
    text = ",".join(value) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
    return " ".join(sanitize_text(text).split())


def _plain(value: object) -> str:
    return str(value)
