"""Fixtures: the webhook service in threads of the test, on real engines, with receivers on loopback."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Event, Thread

import pytest

from services.scheduler.jobs.relay import OutboxRelay
from services.webhooks import delay
from services.webhooks.consumers import ConsumerDefinition, ConsumerFactory, select_consumers
from services.webhooks.pipeline import application_queues
from shared.domain.kafka_principals import SCHEDULER, WEBHOOKS
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.encryption import SecretBox
from shared.platform.kafka.consumer_loop import ConsumerLoop
from shared.platform.kafka.producer import ConfirmingProducer, OutgoingRecord, raise_after
from shared.platform.settings import KafkaSettings, Settings, WebhookSettings
from tests.clock import Clock
from tests.database_roles import as_role
from tests.scheduler.running_jobs import running_jobs
from tests.topics import as_principal
from tests.webhooks.merchants import Merchant
from tests.webhooks.receivers import Receiver

# Short, but long enough to distinguish an early try from one in time.
DELAYS = (0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4)
# Each consumer joins its own consumer group, which takes time, so a test starts only those that it needs.
FIRST_TRY = ("intake",)
ONE_RETRY = (*FIRST_TRY, "delay.1", "deliver")
TWO_RETRIES = (*ONE_RETRY, "delay.2")


class Webhooks:
    """The consumers of the service, and the outbox relay in front of it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def with_delays(self, delays: tuple[float, ...]) -> "Webhooks":
        webhooks = replace(self.settings.webhooks, retry_delays=delays)
        return Webhooks(replace(self.settings, webhooks=webhooks))

    def publish(self, records: Sequence[OutgoingRecord]) -> None:
        """Publish records directly to Kafka."""
        producer = ConfirmingProducer(self.settings.kafka, "test")
        producer.send(records, on_wait=raise_after(30))
        producer.close()

    @contextmanager
    def running(self, *consumers: str, response_limit_s: float = 10.0) -> Iterator[list[ConsumerLoop]]:
        """Run these consumers, or all, and stop them gracefully. `delay` means all eight, `delay.1` the first."""
        database = Database(as_role("mizan_webhooks", self.settings.database), "webhooks", **STABLE_PLANS)
        own = replace(self.settings, kafka=as_principal(self.settings.kafka, WEBHOOKS))
        factory = ConsumerFactory(own, database, response_limit_s)
        loops = [factory.build_loop(consumer) for consumer in _named(consumers)]
        threads = [Thread(target=loop.run, daemon=True) for loop in loops]
        for thread in threads:
            thread.start()
        try:
            yield loops
        finally:
            for loop in loops:
                loop.stop()
            for thread in threads:
                thread.join(30)
            assert not any(thread.is_alive() for thread in threads)
            factory.close()
            database.close()

    @contextmanager
    def running_relay(self) -> Iterator[None]:
        stop = Event()
        kafka = as_principal(self.settings.kafka, SCHEDULER)
        database = as_role("mizan_scheduler", self.settings.database)
        relay = OutboxRelay(database, ConfirmingProducer(kafka, "relay"), stop)
        with running_jobs(relay, stop=stop):
            yield

    @contextmanager
    def running_with_relay(self, *consumers: str, response_limit_s: float = 10.0) -> Iterator[None]:
        """Run the relay and these consumers, or all."""
        with self.running_relay(), self.running(*consumers, response_limit_s=response_limit_s):
            yield


def _named(names: Sequence[str]) -> list[ConsumerDefinition]:
    consumers = select_consumers([name.partition(".")[0] for name in names])
    return [one for one in consumers if not names or {one.name, one.name.partition(".")[0]} & set(names)]


@pytest.fixture
def webhook_settings(settings: Settings) -> Settings:
    return replace(settings, webhooks=WebhookSettings(retry_delays=DELAYS, allow_private=True))


@pytest.fixture
def webhooks(webhook_settings: Settings, all_topics: KafkaSettings) -> Webhooks:
    return Webhooks(webhook_settings)


@pytest.fixture
def quick_clock(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The database's clock, set by the test. The delay topics notice at once instead of after seconds."""
    monkeypatch.setattr(delay, "CLOCK_REFRESH_S", 0.1)
    return clock


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


MakeReceiver = Callable[[], Receiver]


@pytest.fixture
def make_receiver() -> Iterator[MakeReceiver]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Receiver())


MakeMerchant = Callable[[str | None], Merchant]


@pytest.fixture
def make_merchant(database: Database, webhook_settings: Settings) -> MakeMerchant:
    box = SecretBox(webhook_settings.secret_keys)
    return lambda url: Merchant(database, box, url)


@pytest.fixture
def merchant(make_merchant: MakeMerchant, receiver: Receiver) -> Merchant:
    return make_merchant(receiver.url)


@pytest.fixture
def every_endpoint_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine none responds fast."""
    for limit in ("FAST_RESPONSE_S", "UNANSWERED_S", "FIRST_UNANSWERED_S"):
        monkeypatch.setattr(application_queues, limit, 10.0)
