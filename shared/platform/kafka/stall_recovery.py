"""Repairs a Kafka client that has stopped consuming: no records arrive, it stays outside its group, or it is fenced."""

import json
import logging
from collections.abc import Sequence
from math import inf
from time import monotonic

from confluent_kafka import Consumer, KafkaException, TopicPartition
from prometheus_client import Counter

from shared.platform.kafka.admin import ReconnectingAdmin
from shared.platform.kafka.progress import PartitionProgress
from shared.platform.kafka.refusals import is_fatal

RECOVERIES = Counter(
    "mizan_consumer_stall_recoveries",
    "Times that a client which no longer consumed was made to: by a seek, or by a new client",
    ["group", "action"],
)

SEEK_AFTER_S = 10.0
REPLACE_AFTER_S = 10.0
"""After a seek."""
JOIN_LIMIT_S = 150.0
"""Longer than any rebalance: it waits for a consumer that does not poll, for `max.poll.interval.ms` at most."""
FATAL_AGAIN_S = 60.0
"""A client that is fenced so soon after it was made shares its `group.instance.id` with another process."""

_log = logging.getLogger(__name__)


class StallRecovery:
    """Seeks a stalled partition to its position. If that does not help, the client has to be replaced."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._sought: dict[tuple[str, int], float] = {}
        """When each stalled partition was last sought."""

    def recover(self, consumer: Consumer, partitions: Sequence[PartitionProgress]) -> bool:
        """Seek the partitions that have stalled since the last call. Return whether the client must be replaced.

        `partitions` are all that are assigned, or none if they were not observed anew.
        """
        if not partitions:
            return False
        stalled = {each.key: each for each in partitions if each.is_fetch_stalled(SEEK_AFTER_S)}
        self._sought = {key: at for key, at in self._sought.items() if key in stalled}
        if any(stalled[key].client_empty_at - at > REPLACE_AFTER_S for key, at in self._sought.items()):
            _log.error(
                "%s: no records arrive from %s after a seek; replacing the Kafka client",
                self._group,
                ", ".join(map(str, stalled.values())),
            )
            RECOVERIES.labels(self._group, "new_client").inc()
            self._sought.clear()
            return True
        for key, progress in stalled.items():
            if key not in self._sought:
                self._sought[key] = monotonic()
                self._seek(consumer, progress)
        return False

    def _seek(self, consumer: Consumer, progress: PartitionProgress) -> None:
        (topic, partition), offset = progress.key, progress.next_offset
        assert offset is not None
        _log.warning(
            "%s: %d records wait in %s and none arrive; seeking to offset %d",
            self._group,
            progress.lag,
            progress,
            offset,
        )
        RECOVERIES.labels(self._group, "seek").inc()
        try:
            consumer.seek(TopicPartition(topic, partition, offset))
        except KafkaException as error:
            _log.warning("%s: the seek failed: %s", self._group, error)


class GroupMembership:
    """Notices a client that stays outside its group although Kafka answers, so that it can be replaced.

    Seen with librdkafka 2.16 after coordinators had moved for minutes: its requests to the coordinator timed out before
    they were sent, again and again. It reports no error, and without partitions nothing looks stalled.
    """

    def __init__(self, group: str, admin: ReconnectingAdmin) -> None:
        self._group = group
        self._admin = admin
        self._outside_since: float | None = None

    def read_statistics(self, statistics: str) -> None:
        """Take over the state that the client reports."""
        group = json.loads(statistics).get("cgrp", {})
        if group.get("join_state") == "steady" or not self._admin.is_answered:
            self._outside_since = None
        elif self._outside_since is None:
            self._outside_since = monotonic()

    def is_lost(self) -> bool:
        """Return whether the client has to be replaced."""
        if self._outside_since is None or monotonic() - self._outside_since < JOIN_LIMIT_S:
            return False
        _log.error("%s: the Kafka client does not join its group; replacing it", self._group)
        RECOVERIES.labels(self._group, "new_client").inc()
        self._outside_since = None
        return True


class FatalErrors:
    """Tells whether a new client repairs a fatal error: if it is the first one for a while.

    A client that had one can neither read nor commit. A static member is fenced if it joins again while a commit of its
    session before is still on its way; but also if another process has the same name.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._last_at = -inf

    def can_be_repaired(self, error: KafkaException) -> bool:
        """Return whether the client has to be replaced. Otherwise the error is not fatal, or has come again."""
        cause = error.args[0]
        if not is_fatal(cause) or monotonic() - self._last_at < FATAL_AGAIN_S:
            return False
        _log.error("%s: %s; replacing the Kafka client", self._group, cause.str())
        RECOVERIES.labels(self._group, "new_client").inc()
        self._last_at = monotonic()
        return True
