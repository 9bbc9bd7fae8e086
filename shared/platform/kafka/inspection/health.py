"""Whether groups get on, judged from one look after another. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.platform.kafka.inspection.snapshot import GroupView, KafkaView, LagView

BEHIND_S = 30.0
STALLED_S = 60.0


class Standing(StrEnum):
    """From good to bad."""

    FINE = "fine"
    BEHIND = "behind"
    """It works, but its oldest record has waited for long."""
    STALLED = "stalled"
    """Members are there, records wait, and nothing gets done."""
    NOBODY = "nobody"
    """Records wait, and there is no member."""
    AWAY = "away"
    """Kafka cannot be looked at, so nobody knows."""

    @property
    def badness(self) -> int:
        return list(Standing).index(self)


@dataclass(frozen=True, slots=True)
class Judgement:
    standing: Standing
    """The worst of its partitions': one stuck partition of six is a stuck group."""
    partitions: Mapping[int, Standing]


class Judge:
    """Fed with every look; remembers since when each committed offset has not moved.

    What a delay topic holds until its time is no lag. Without a member it counts all the same: nobody will move it.
    """

    def __init__(self) -> None:
        self._unmoved: dict[tuple[str, int], tuple[int | None, datetime]] = {}

    def judge(self, view: KafkaView) -> dict[str, Judgement]:
        """By group."""
        return {group.name: self._judge_group(group, view.at) for group in view.groups}

    def _judge_group(self, group: GroupView, now: datetime) -> Judgement:
        partitions = {lag.partition: self._judge_partition(group, lag, now) for lag in group.partitions}
        worst = max(partitions.values(), key=lambda standing: standing.badness, default=Standing.FINE)
        return Judgement(worst, partitions)

    def _judge_partition(self, group: GroupView, lag: LagView, now: datetime) -> Standing:
        unmoved_s = self._unmoved_s((group.name, lag.partition), lag, now)
        if lag.lag and not group.members:
            return Standing.NOBODY
        if lag.lag_s > STALLED_S and unmoved_s >= STALLED_S:
            return Standing.STALLED
        return Standing.BEHIND if lag.lag_s > BEHIND_S else Standing.FINE

    def _unmoved_s(self, place: tuple[str, int], lag: LagView, now: datetime) -> float:
        """While something waited: a partition that was idle for an hour has not been stuck for an hour."""
        offset, since = self._unmoved.get(place, (lag.committed, now))
        if offset != lag.committed or lag.lag_s == 0:
            since = now
        self._unmoved[place] = (lag.committed, since)
        return (now - since).total_seconds()


def all_away(groups: Mapping[str, Judgement]) -> dict[str, Judgement]:
    """While Kafka cannot be looked at, of the groups that were judged last."""
    return {
        name: Judgement(Standing.AWAY, dict.fromkeys(judgement.partitions, Standing.AWAY))
        for name, judgement in groups.items()
    }
