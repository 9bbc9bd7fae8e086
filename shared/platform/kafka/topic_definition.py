"""How a topic is defined. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    retention: timedelta
    key: str
    """What its records are keyed by, so what stays in order."""
    group: str | None = None
    """Who consumes it; None where nobody does, but people look into it."""
    due_at: Callable[[bytes | None], datetime | None] | None = None
    """For a delay topic, whose consumer holds each record until it is due: reads that time from a record's value."""
    max_message_bytes: int = 1024 * 1024

    def config(self, replication_factor: int) -> Mapping[str, str]:
        return {
            "max.message.bytes": str(self.max_message_bytes),
            "cleanup.policy": "delete",
            "retention.ms": str(int(self.retention.total_seconds() * 1000)),
            # A write counts once a majority has it, and the loss of one broker stops nobody.
            "min.insync.replicas": str(replication_factor // 2 + 1 if replication_factor > 2 else 1),
            "unclean.leader.election.enable": "false",
        }
