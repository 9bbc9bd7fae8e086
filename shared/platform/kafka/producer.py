"""A producer that sends a batch of records and waits until Kafka has confirmed them, or reports which it refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.refusals import AUTHORIZATION_ERRORS, explain, is_fatal
from shared.platform.settings import KafkaSettings
from shared.platform.tracing.traceparent import HEADER

_WAIT_S = 0.5
_Headers = list[tuple[str, str | bytes | None]] | None


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    topic: str
    key: bytes | str | None
    value: bytes | str | None
    trace: str | None = None
    """A traceparent for its headers."""


class NotConfirmedError(Exception):
    """Kafka refused some records of a batch; `refused` has their indexes and errors."""

    def __init__(self, refused: dict[int, KafkaError], total: int) -> None:
        self.refused = refused
        reasons = ", ".join(sorted({error.str() for error in refused.values()}))
        super().__init__(f"{len(refused)} of {total} records were not confirmed: {reasons}")


class NotConfirmedYetError(NotConfirmedError, KafkaUnavailableError):
    """The same, but each of the refused records may succeed when it is sent again."""


class ConfirmingProducer:
    """Not for several threads at once. Records wait for Kafka for as long as the caller allows."""

    def __init__(self, settings: KafkaSettings, name: str, **special: int) -> None:
        self._settings = settings
        # The caller decides how long to wait: a time-out inside could let a later record overtake an earlier one.
        self._new_client = partial(clients.producer, settings, name, message_timeout_ms=0, **special)
        self._client: Producer = self._new_client()

    def send(self, records: Sequence[OutgoingRecord], *, on_wait: Callable[[], None]) -> None:
        """Return once every record is confirmed; raise NotConfirmedError when Kafka refuses some.

        While waiting, it calls `on_wait` about twice a second. If that raises, the records not yet sent are discarded;
        those on the wire at that moment may still arrive.
        """
        refused: dict[int, KafkaError] = {}
        try:
            stopped: dict[tuple[str, object], KafkaError] = {}
            for index, record in enumerate(records):
                key = (record.topic, record.key)
                if key in stopped:  # it would overtake a refused record of its key
                    refused[index] = stopped[key]
                    continue
                self._produce(record, partial(_report, refused, index), on_wait)
                if index in refused:
                    stopped[key] = refused[index]
            while self._client.flush(_WAIT_S):
                on_wait()
        except KafkaUnavailableError as error:
            self._replace_client()
            raise KafkaUnavailableError(f"{error}{explain(self._settings)}") from error
        except BaseException:
            self._replace_client()
            raise
        if not refused:
            return
        if any(is_fatal(error) or error.code() in AUTHORIZATION_ERRORS for error in refused.values()):
            # The client remembers for minutes that it may not use a topic, and would wait so long to ask again.
            self._replace_client()
        transient = all(_is_transient(error) for error in refused.values())
        raise (NotConfirmedYetError if transient else NotConfirmedError)(refused, len(records))

    def topic_name(self, topic: str) -> str:
        """Return the name of the topic with the installation's prefix."""
        return clients.topic_name(self._settings, topic)

    def poll(self) -> None:
        """Handle the client's events. Call it now and then while there is nothing to send."""
        self._client.poll(0)

    def _produce(
        self,
        record: OutgoingRecord,
        report: Callable[[KafkaError | None, Message | None], None],
        on_wait: Callable[[], None],
    ) -> None:
        topic = clients.topic_name(self._settings, record.topic)
        headers: _Headers = None if record.trace is None else [(HEADER, record.trace)]
        while True:
            try:
                self._client.produce(topic, record.value, record.key, on_delivery=report, headers=headers)
            except BufferError:  # its queue is full: let some records leave first
                self._client.poll(_WAIT_S)
                on_wait()
            except KafkaException as error:  # refused without asking the broker: too large, unknown topic …
                report(error.args[0], None)
                return
            else:
                return

    def _replace_client(self) -> None:
        self._client.purge(in_queue=True, in_flight=True, blocking=True)
        self._client = self._new_client()

    def close(self) -> None:
        self._client.purge(in_queue=True, in_flight=True, blocking=True)


def raise_after(seconds: float) -> Callable[[], None]:
    """Return an `on_wait` that raises KafkaUnavailableError after so many seconds."""
    deadline = monotonic() + seconds

    def check_deadline() -> None:
        if monotonic() > deadline:
            raise KafkaUnavailableError(f"Kafka did not confirm within {seconds:g} s")

    return check_deadline


def _is_transient(error: KafkaError) -> bool:
    """An operator creates a missing topic or ACL; a fatal error ends with the client that had it."""
    is_missing = error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
    return error.retriable() or is_fatal(error) or is_missing or error.code() in AUTHORIZATION_ERRORS


def _report(refused: dict[int, KafkaError], index: int, error: KafkaError | None, _: Message | None) -> None:
    if error is not None:
        refused[index] = error
