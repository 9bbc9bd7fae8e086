"""The definition of a topic. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    retention: timedelta
    key: str
    """What its records are keyed by: records of one key stay in order."""
    group: str | None = None
    """The group that consumes it; None for a topic that only people read."""
    due_at: Callable[[bytes | None], datetime | None] | None = None
    """For a delay topic, whose consumer holds each record until it is due: reads that time from a record's value."""
    max_message_bytes: int = 1024 * 1024

    def config(self, replication_factor: int) -> Mapping[str, str]:
        return {
            "max.message.bytes": str(self.max_message_bytes),
            "cleanup.policy": "delete",
            "retention.ms": str(int(self.retention.total_seconds() * 1000)),
            # A write counts once a majority has it, so the loss of one broker stops nothing.
            "min.insync.replicas": str(replication_factor // 2 + 1 if replication_factor > 2 else 1),
            "unclean.leader.election.enable": "false",
        }
