"""What Kafka tells of the ends of partitions, and what it does not."""

from concurrent.futures import Future
from typing import Any, cast

from confluent_kafka import TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo

from shared.platform.kafka.admin import LastingAdmin
from shared.platform.kafka.end_offsets import AskedEnds


class PartlySilent:
    """librdkafka while one broker of several is frozen: no error, but -1001 for the partitions it leads."""

    made_anew = False

    def client(self) -> "PartlySilent":
        return self

    def list_offsets(self, asked: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, Future[Any]]:
        return {place: self._answer(-1001 if place.partition == 1 else 7) for place in asked}

    @staticmethod
    def _answer(offset: int) -> "Future[ListOffsetsResultInfo]":
        answer: Future[ListOffsetsResultInfo] = Future()
        answer.set_result(ListOffsetsResultInfo(offset, -1, -1))
        return answer

    def answered(self) -> None:
        pass

    def make_anew(self) -> None:
        self.made_anew = True


def test_a_broker_that_says_nothing_is_not_taken_at_its_word() -> None:
    """An empty partition once had 1001 records waiting for ever, and its consumer was not ready for ever."""
    admin = PartlySilent()
    ends = AskedEnds(cast("LastingAdmin", admin))
    ends.ask([TopicPartition("work", 0), TopicPartition("work", 1)])
    assert ends.take_answers() == {("work", 0): (7, 7)}
    assert admin.made_anew, "the leader of the other may have changed"
