"""Sends a batch of records and comes back when Kafka has confirmed them: all, or it says which not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings
from shared.platform.tracing.traceparent import HEADER

_LOOK_EVERY_S = 0.5
_Headers = list[tuple[str, str | bytes | None]] | None


@dataclass(frozen=True, slots=True)
class Outgoing:
    topic: str
    key: bytes | str | None
    value: bytes | str | None
    trace: str | None = None
    """A traceparent, which goes into its headers."""


class NotConfirmedError(Exception):
    """Kafka refused some records of a batch; `refused` are their places in it."""

    def __init__(self, refused: dict[int, KafkaError], total: int) -> None:
        self.refused = refused
        reasons = ", ".join(sorted({error.str() for error in refused.values()}))
        super().__init__(f"{len(refused)} of {total} records were not confirmed: {reasons}")


class NotConfirmedYetError(NotConfirmedError, KafkaUnavailableError):
    """The same, but every refusal may be over when it is tried again."""


class ConfirmingProducer:
    """Not for several threads at once. Records wait inside for Kafka as long as the caller does."""

    def __init__(self, settings: KafkaSettings, role: str, **special: int) -> None:
        self._settings = settings
        # The caller's patience decides; a time-out inside could let a later record overtake an earlier one.
        self._new_client = partial(clients.producer, settings, role, message_timeout_ms=0, **special)
        self._client: Producer = self._new_client()

    def send(self, records: Sequence[Outgoing], *, patience: Callable[[], None]) -> None:
        """Returns once every record is confirmed.

        While it waits it calls `patience` about twice a second; when that raises, what is still waiting inside
        is thrown away. Of that, only what was on the wire at that moment may still arrive.
        """
        refused: dict[int, KafkaError] = {}
        try:
            stopped: dict[tuple[str, object], KafkaError] = {}
            for place, record in enumerate(records):
                key = (record.topic, record.key)
                if key in stopped:  # behind a refused one of its key it would overtake it
                    refused[place] = stopped[key]
                    continue
                self._produce(record, partial(_report, refused, place), patience)
                if place in refused:
                    stopped[key] = refused[place]
            while self._client.flush(_LOOK_EVERY_S):
                patience()
        except BaseException:
            self._start_afresh()
            raise
        if not refused:
            return
        if any(error.fatal() for error in refused.values()):
            self._start_afresh()
        passing = all(_may_pass(error) for error in refused.values())
        raise (NotConfirmedYetError if passing else NotConfirmedError)(refused, len(records))

    def topic_name(self, topic: str) -> str:
        """As Kafka knows it."""
        return clients.topic_name(self._settings, topic)

    def serve(self) -> None:
        """To be called now and then while there is nothing to send: lets the client tell what it has to say."""
        self._client.poll(0)

    def _produce(
        self,
        record: Outgoing,
        report: Callable[[KafkaError | None, Message | None], None],
        patience: Callable[[], None],
    ) -> None:
        topic = clients.topic_name(self._settings, record.topic)
        headers: _Headers = None if record.trace is None else [(HEADER, record.trace)]
        while True:
            try:
                self._client.produce(topic, record.value, record.key, on_delivery=report, headers=headers)
            except BufferError:  # its queue is full: let some records leave first
                self._client.poll(_LOOK_EVERY_S)
                patience()
            except KafkaException as error:  # refused without asking the broker: too large, unknown topic …
                report(error.args[0], None)
                return
            else:
                return

    def _start_afresh(self) -> None:
        self._client.purge(in_queue=True, in_flight=True, blocking=True)
        self._client = self._new_client()

    def close(self) -> None:
        self._client.purge(in_queue=True, in_flight=True, blocking=True)


def until(seconds: float) -> Callable[[], None]:
    """Patience for so many seconds."""
    deadline = monotonic() + seconds

    def patience() -> None:
        if monotonic() > deadline:
            raise KafkaUnavailableError(f"Kafka did not confirm within {seconds:g} s")

    return patience


def _may_pass(error: KafkaError) -> bool:
    """A topic that is missing is made again by the scheduler; a fatal error is over with the client it befell."""
    is_missing = error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
    return error.retriable() or error.fatal() or is_missing


def _report(refused: dict[int, KafkaError], place: int, error: KafkaError | None, _: Message | None) -> None:
    if error is not None:
        refused[place] = error
