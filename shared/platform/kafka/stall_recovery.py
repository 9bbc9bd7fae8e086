"""Repairs a Kafka client that has stopped fetching: its partitions have records, and none arrive."""

import logging
from collections.abc import Sequence
from time import monotonic

from confluent_kafka import Consumer, KafkaException, TopicPartition
from prometheus_client import Counter

from shared.platform.kafka.progress import PartitionProgress

RECOVERIES = Counter(
    "mizan_consumer_stall_recoveries",
    "Times that a client which fetched nothing was made to: by a seek, or by a new client",
    ["group", "action"],
)

SEEK_AFTER_S = 10.0
REPLACE_AFTER_S = 10.0
"""After a seek."""

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
