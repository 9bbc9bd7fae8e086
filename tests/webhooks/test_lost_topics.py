"""A topic is deleted and recreated. Its records are requeued from PostgreSQL, and no webhook is lost."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from services.scheduler.jobs.requeue_deliveries import DeliveryRequeue
from services.scheduler.jobs.requeue_events import EventRequeue
from services.scheduler.requeue_sweep import RequeueThresholds
from shared.domain.kafka_principals import SCHEDULER
from shared.domain.topics import PAYMENT_INTENT_EVENTS, WEBHOOKS_DELAY, WEBHOOKS_DELIVER
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.kafka.topic_definition import Topic
from shared.platform.kafka.topic_setup import ensure_topics
from tests.database_roles import as_role
from tests.scheduler.running_jobs import running_jobs
from tests.topics import TopicReader, as_principal, delete_topic
from tests.waiting import eventually
from tests.webhooks.conftest import FIRST_TRY, Webhooks
from tests.webhooks.merchants import Merchant, ids_in
from tests.webhooks.receivers import Receiver, Reply

# As in the scheduler, only earlier.
SOON = RequeueThresholds(
    min_overdue_s=2.0, requeue_interval_s=10.0, sweep_interval_s=0.5, poll_interval_s=0.5
)


@contextmanager
def requeueing(webhooks: Webhooks) -> Iterator[None]:
    kafka = as_principal(webhooks.settings.kafka, SCHEDULER)
    with (
        closing(
            Database(as_role("mizan_scheduler", webhooks.settings.database), "scheduler", **STABLE_PLANS)
        ) as database,
        webhooks.running_relay(),
        running_jobs(DeliveryRequeue(database, kafka, SOON), EventRequeue(database, kafka, SOON)),
    ):
        yield


def lose_topic(webhooks: Webhooks, topic: Topic) -> None:
    """Delete a topic and recreate it, as an operator does."""
    kafka = webhooks.settings.kafka
    delete_topic(kafka, topic)
    ensure_topics(kafka, [topic])


@pytest.mark.parametrize(
    "topic", [PAYMENT_INTENT_EVENTS, WEBHOOKS_DELIVER, WEBHOOKS_DELAY[0]], ids=lambda t: t.name
)
def test_topic_lost_under_running_consumers_loses_no_webhook(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver, topic: Topic
) -> None:
    """Consumers continue in the recreated topic, with lost and new records."""
    receiver.answer = Reply(500)
    delayed = webhooks.with_delays((3.0, *[0.4] * 7))
    with requeueing(delayed), delayed.running(*FIRST_TRY, "delay", "deliver"):
        delivery_ids = [merchant.create_event() for _ in range(20)]
        eventually(lambda: len(receiver.requests) >= 10)
        lose_topic(webhooks, topic)
        receiver.answer = Reply(200)
        delivery_ids += [merchant.create_event() for _ in range(20)]
        eventually(lambda: merchant.statuses() == {"succeeded": 40}, 100)
    assert set(ids_in(receiver)) == set(delivery_ids)


class TestWithoutConsumers:
    """The topic is lost while no consumer runs. Later consumers find it empty."""

    def test_lost_events_topic_loses_no_webhook(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver, database: Database
    ) -> None:
        """The relay has published the events, and intake has not read them."""
        delivery_ids = [merchant.create_event() for _ in range(20)]

        def is_published() -> bool:
            with database.cursor() as cursor:
                return cursor.execute("select from outbox limit 1").rowcount == 0

        with webhooks.running_relay():
            eventually(is_published)
        self._all_arrive_without(PAYMENT_INTENT_EVENTS, webhooks, merchant, 20)
        assert sorted(ids_in(receiver)) == sorted(delivery_ids)

    def test_lost_deliver_topic_loses_no_webhook(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver
    ) -> None:
        """The retries are due and have left their delay topic, and nothing was sent yet."""
        receiver.answer = Reply(500)
        delivery_ids = [merchant.create_event() for _ in range(20)]
        with (
            webhooks.running_with_relay(*FIRST_TRY, "delay"),
            closing(TopicReader(webhooks.settings.kafka, WEBHOOKS_DELIVER.name)) as reader,
        ):
            reader.read(20)
        receiver.answer = Reply(200)
        self._all_arrive_without(WEBHOOKS_DELIVER, webhooks, merchant, 20)
        assert [len(merchant.tries(one)) for one in delivery_ids] == [2] * 20

    def test_lost_delay_topic_loses_no_retry(
        self, webhooks: Webhooks, merchant: Merchant, receiver: Receiver
    ) -> None:
        receiver.answer = Reply(500)
        delivery_ids = [merchant.create_event() for _ in range(20)]
        with webhooks.running_relay(), webhooks.running(*FIRST_TRY):
            eventually(lambda: all(merchant.tries(one) for one in delivery_ids))
        receiver.answer = Reply(200)
        self._all_arrive_without(WEBHOOKS_DELAY[0], webhooks, merchant, 20)
        assert [len(merchant.tries(one)) for one in delivery_ids] == [2] * 20

    def _all_arrive_without(self, topic: Topic, webhooks: Webhooks, merchant: Merchant, count: int) -> None:
        lose_topic(webhooks, topic)
        with requeueing(webhooks), webhooks.running(*FIRST_TRY, "delay", "deliver"):
            eventually(lambda: merchant.statuses() == {"succeeded": count}, 60)
