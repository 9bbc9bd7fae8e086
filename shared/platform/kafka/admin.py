"""Admin clients for long-lived processes: one that reconnects, end offsets through it, and a readiness check."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.refusals import explain
from shared.platform.settings import KafkaSettings

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # these two alone are untyped
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_RECONNECT_AFTER_S = 30.0
_RECENT_S = 15.0
_OFFSETS_TIMEOUT_S = 5.0
_READINESS_TIMEOUT_S = 1.5

_OffsetAnswers = Mapping[TopicPartition, "Future[ListOffsetsResultInfo]"]


class ReconnectingAdmin:
    """Replaces its client when it has had no answer for 30 seconds. For one thread.

    The client of librdkafka 2.16 learns the leaders of partitions once. Later it keeps sending an old leader epoch and
    is refused. It can also lose all its brokers while one of them starts.
    """

    def __init__(self, settings: KafkaSettings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._client: AdminClient | None = None
        self._answered_at = 0.0
        self._created_at = 0.0

    @property
    def is_answered(self) -> bool:
        """Whether Kafka has answered lately; consumers ask it every few seconds."""
        return monotonic() - self._answered_at < _RECENT_S

    def client(self) -> AdminClient:
        """Return the client. Do not keep it: the next call may return another, and this one's answers never come."""
        silent_since = max(self._answered_at, self._created_at)
        if self._client is None or monotonic() - silent_since > _RECONNECT_AFTER_S:
            self._client = clients.admin(self._settings, self._name)
            self._created_at = monotonic()
        self._client.poll(0)  # handles its events, which would pile up otherwise
        return self._client

    def record_answer(self) -> None:
        """Note that the client has just had an answer."""
        self._answered_at = monotonic()

    def close(self) -> None:
        """End the client; answers on their way never come. The next call makes a new one."""
        self._client = None


class EndOffsets:
    """Fetches the first and the end offsets of partitions without waiting for the answer.

    Not through the consumer: there the request would queue behind a fetch that waits for records.
    """

    def __init__(self, admin: ReconnectingAdmin) -> None:
        self._admin = admin
        self._firsts: _OffsetAnswers = {}
        self._ends: _OffsetAnswers = {}

    def request(self, partitions: Sequence[TopicPartition]) -> None:
        """Send a request. Answers of an earlier one that have not come yet are ignored."""
        client = self._admin.client()
        self._firsts, self._ends = (
            client.list_offsets(dict.fromkeys(partitions, which), request_timeout=_OFFSETS_TIMEOUT_S)
            for which in (EARLIEST, LATEST)
        )

    def take_answers(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return (first, end) by (topic, partition) once all answers are there; {} before.

        Partitions whose offsets are unknown are left out.
        """
        answers = [*self._firsts.values(), *self._ends.values()]
        if not answers or not all(answer.done() for answer in answers):
            return {}
        offsets = {
            (tp.topic, tp.partition): (first, end)
            for tp in self._firsts
            if (first := _offset(self._firsts[tp])) is not None
            and (end := _offset(self._ends[tp])) is not None
        }
        if offsets:
            self._admin.record_answer()
        if len(offsets) < len(self._firsts):  # what the client knows about the cluster is outdated
            self._admin.close()
        self._firsts, self._ends = {}, {}
        return offsets


class KafkaReadiness:
    """The readiness check for Kafka. It keeps one client, so that frequent checks are cheap.

    A client without an answer may be stuck with the one broker that is down, so another client tries once more.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin: AdminClient | None = None

    def check(self) -> None:
        """Raise KafkaUnavailableError when the cluster does not answer."""
        if self._admin is not None:
            with suppress(KafkaUnavailableError):
                return self._find_brokers(self._admin)
        self._admin = clients.admin(self._settings, "readiness")
        return self._find_brokers(self._admin)

    def _find_brokers(self, admin: AdminClient) -> None:
        admin.poll(0)  # handles its events, which would pile up otherwise
        try:
            # Not describe_cluster: librdkafka 2.16 aborts the process if the answer names no broker, as it does while
            # the controller considers all of them dead.
            brokers = admin.list_topics(timeout=_READINESS_TIMEOUT_S).brokers
        except KafkaException as error:
            admin.poll(0)  # so that we learn why
            raise KafkaUnavailableError(f"no answer: {error}{explain(self._settings)}") from error
        if not brokers:
            raise KafkaUnavailableError("no broker is available")


def is_unknown(info: ListOffsetsResultInfo) -> bool:
    """For a partition whose broker does not answer, librdkafka reports no error, but the offset -1001."""
    return info.offset < 0


def _offset(answer: "Future[ListOffsetsResultInfo]") -> int | None:
    return None if answer.exception() is not None or is_unknown(answer.result()) else answer.result().offset
