"""Finds consumer groups that nobody consumes for: whatever is sent to them waits, however young it is."""

from collections.abc import Sequence
from contextlib import closing

from mizan.reconciliation.checks import (
    CHECKS,
    Finding,
    Findings,
    ReportProgress,
    collect_findings,
    keep_persistent,
    recheck_until_settled,
)
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.inspection.inspector import KafkaInspector
from shared.platform.kafka.inspection.snapshot import GroupSnapshot
from shared.platform.settings import KafkaSettings


def check_consumers(settings: KafkaSettings, report_progress: ReportProgress) -> tuple[Findings, int]:
    """Return the groups without members and the number of all groups. Raises KafkaUnavailableError."""
    with closing(KafkaInspector(settings, ALL_TOPICS)) as inspector:
        groups = inspector.inspect().groups

        def recheck(before: Findings) -> Findings:
            return keep_persistent(before, _without_members(inspector.inspect().groups))

        return recheck_until_settled(_without_members(groups), recheck, report_progress), len(groups)


def _without_members(groups: Sequence[GroupSnapshot]) -> Findings:
    check = CHECKS["consumers_alive"]
    return collect_findings(
        Finding(check, group.name, f"no member consumes {group.topic}: {_records(group.lag)}")
        for group in groups
        if not group.members
    )


def _records(number: int) -> str:
    return "1 record waits" if number == 1 else f"{number:,} records wait"
