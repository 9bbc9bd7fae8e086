"""Where partitions begin and end, asked of Kafka without waiting for the answer.

Not by the consumer: there the question stands in line behind a fetch that waits for records.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from confluent_kafka import TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec

from shared.platform.kafka.admin import LastingAdmin

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # these two alone are untyped
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]

_TIMEOUT_S = 5.0

Answers = Mapping[TopicPartition, "Future[ListOffsetsResultInfo]"]


class AskedEnds:
    def __init__(self, admin: LastingAdmin) -> None:
        self._admin = admin
        self._lows: Answers = {}
        self._highs: Answers = {}

    def ask(self, places: Sequence[TopicPartition]) -> None:
        """Answers that have not come yet are forgotten."""
        client = self._admin.client()
        self._lows, self._highs = (
            client.list_offsets(dict.fromkeys(places, which), request_timeout=_TIMEOUT_S)
            for which in (EARLIEST, LATEST)
        )

    def take_answers(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Once all are there; of a place that nothing can be told of, none."""
        asked = [*self._lows.values(), *self._highs.values()]
        if not asked or not all(answer.done() for answer in asked):
            return {}
        told = {
            (place.topic, place.partition): (low, high)
            for place in self._lows
            if (low := _offset(self._lows[place])) is not None
            and (high := _offset(self._highs[place])) is not None
        }
        if told:
            self._admin.answered()
        if len(told) < len(self._lows):
            self._admin.make_anew()
        self._lows, self._highs = {}, {}
        return told


def _offset(answer: "Future[ListOffsetsResultInfo]") -> int | None:
    return None if answer.exception() is not None or is_unknown(answer.result()) else answer.result().offset


def is_unknown(found: ListOffsetsResultInfo) -> bool:
    """Of a partition whose broker does not answer, librdkafka reports no error, but the offset -1001."""
    return found.offset < 0
