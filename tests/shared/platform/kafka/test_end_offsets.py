"""End offsets that Kafka reports, and those that it could not determine."""

from concurrent.futures import Future
from typing import Any, cast

from confluent_kafka import TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo

from shared.platform.kafka.admin import EndOffsets, ReconnectingAdmin


class PartlySilent:
    """librdkafka while one broker of several is frozen: no error, but -1001 for the partitions it leads."""

    was_closed = False

    def client(self) -> "PartlySilent":
        return self

    def list_offsets(self, asked: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, Future[Any]]:
        return {place: self._answer(-1001 if place.partition == 1 else 7) for place in asked}

    @staticmethod
    def _answer(offset: int) -> "Future[ListOffsetsResultInfo]":
        answer: Future[ListOffsetsResultInfo] = Future()
        answer.set_result(ListOffsetsResultInfo(offset, -1, -1))
        return answer

    def record_answer(self) -> None:
        pass

    def close(self) -> None:
        self.was_closed = True


def test_end_offsets_of_a_frozen_broker_are_left_out() -> None:
    """Regression: an empty partition got a lag of 1001 records, and its consumer never became ready."""
    admin = PartlySilent()
    offsets = EndOffsets(cast("ReconnectingAdmin", admin))
    offsets.request([TopicPartition("work", 0), TopicPartition("work", 1)])
    assert offsets.take_answers() == {("work", 0): (7, 7)}
    assert admin.was_closed, "the leader of the other may have changed"
