"""`mizan lag`: how far every consumer group is behind, in records and in seconds."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click

from mizan.command_context import command_settings
from mizan.output import echo_rows, json_option, timestamp
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.clients import group_name, topic_name
from shared.platform.kafka.inspection.inspector import KafkaInspector
from shared.platform.kafka.inspection.snapshot import GroupSnapshot, KafkaSnapshot, PartitionLag
from shared.platform.settings import KafkaSettings

EXIT_TOO_FAR_BEHIND = 3


@click.command("lag")
@json_option
@click.option("--partitions", is_flag=True, help="One row per partition.")
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0),
    help="Exit with 3 when a group is further behind than this, or has records waiting and no members.",
)
def lag_command(*, as_json: bool, partitions: bool, max_seconds: float | None) -> None:
    """Show how far each consumer group is behind. In a delay topic only due records count as late.

    Exit code 1: Kafka is not available. 3: a group is too far behind, see --max-seconds.
    """
    with (
        command_settings(uses_kafka=True) as settings,
        closing(KafkaInspector(settings.kafka, ALL_TOPICS)) as inspector,
    ):
        view = inspector.inspect()
    if as_json:
        click.echo(json.dumps({"groups": [_as_json(settings.kafka, group) for group in view.groups]}))
    else:
        rows = _partition_rows(view) if partitions else _group_rows(view)
        echo_rows(list(rows))
    if max_seconds is not None:
        _check_limits(view, max_seconds)


def _check_limits(view: KafkaSnapshot, max_seconds: float) -> None:
    behind = [group.name for group in view.groups if group.lag_s > max_seconds]
    alone = [group.name for group in view.groups if group.lag and not group.members]
    if behind:
        click.echo(f"more than {max_seconds:g} s behind: {', '.join(behind)}", err=True)
    if alone:
        click.echo(f"records wait and no member consumes them: {', '.join(alone)}", err=True)
    if behind or alone:
        raise click.exceptions.Exit(EXIT_TOO_FAR_BEHIND)


def _group_rows(view: KafkaSnapshot) -> Iterator[dict[str, Any]]:
    for group in view.groups:
        yield {
            "group": group.name,
            "state": group.state,
            "members": len(group.members),
            "lag": f"{group.lag:,}",
            "seconds": f"{group.lag_s:.1f}",
            "next due": timestamp(group.next_due_at) or "",
            "last commit": timestamp(group.committed_at),
        }


def _partition_rows(view: KafkaSnapshot) -> Iterator[dict[str, Any]]:
    for group in view.groups:
        owners = {number: member.client_id for member in group.members for number in member.partitions}
        for lag in group.partitions:
            yield {
                "group": group.name,
                "partition": lag.partition,
                "committed": lag.committed,
                "end": lag.high,
                "lag": f"{lag.lag:,}",
                "seconds": f"{lag.lag_s:.1f}",
                "next due": timestamp(lag.due_at) or "",
                "last commit": timestamp(lag.committed_at),
                "member": owners.get(lag.partition),
            }


def _as_json(settings: KafkaSettings, group: GroupSnapshot) -> dict[str, Any]:
    """Use the names as in Kafka. Only delay topics have `waiting` and `next_due`."""
    delay = {"waiting": group.waiting, "next_due": timestamp(group.next_due_at)} if group.is_delay else {}
    return {
        "group": group_name(settings, group.name),
        "topic": topic_name(settings, group.topic),
        "state": group.state,
        "members": [
            {
                "id": member.id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": list(member.partitions),
            }
            for member in group.members
        ],
        "lag_records": group.lag,
        "lag_seconds": round(group.lag_s, 3),
        "last_commit": timestamp(group.committed_at),
        **delay,
        "partitions": [_partition_as_json(lag, group.is_delay) for lag in group.partitions],
    }


def _partition_as_json(lag: PartitionLag, is_delay: bool) -> dict[str, Any]:
    due: dict[str, str | None] = {"due": timestamp(lag.due_at)} if is_delay else {}
    return {
        "partition": lag.partition,
        "committed": lag.committed,
        "end": lag.high,
        "lag_records": lag.lag,
        "lag_seconds": round(lag.lag_s, 3),
        "oldest_waiting": timestamp(lag.head_at),
        **due,
        "last_commit": timestamp(lag.committed_at),
    }
