"""The outbox relay: rows per second from a full outbox, latency of a fresh row, and the price of idling."""

import random
import statistics
from collections.abc import Iterable
from threading import Event
from time import monotonic, sleep
from uuid import uuid4

import psutil
import psycopg
from confluent_kafka import Consumer, TopicPartition

from bench.figures import Figure, percentile
from bench.world import World
from services.scheduler.jobs.relay import OutboxRelay
from shared.domain.outbox import WAKE_RELAY_SQL
from shared.domain.topics import PAYMENT_INTENT_EVENTS
from shared.platform.kafka import clients
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.settings import DatabaseSettings, KafkaSettings

ROWS = 100_000
SINGLE_ROWS = 200
IDLE_S = 5.0

_FILL = """
insert into outbox (topic, key, payload)
select 'payment_intents.events', intent,
       intent_event_message(uuidv7(), intent, intent, 1, 'payment_intent.created', mizan_now())
from (select uuidv7() as intent from generate_series(1, %s)) as intents
"""


# As the transactions of a payment and of an expiry do.
_FILL_AND_WAKE = f"with filled as ({_FILL} returning id) select {WAKE_RELAY_SQL} from filled"


def measure(world: World) -> Iterable[Figure]:
    database, kafka = world.empty_database(), world.empty_topics()
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(_FILL, (ROWS,))
        seconds = _drain(database, kafka, connection)
        yield Figure(
            "relay_rows_per_s", round(ROWS / seconds), f"outbox rows published, from {ROWS:,} waiting"
        )
        with world.service("services.scheduler", database, kafka) as scheduler:
            latencies = _single_rows(kafka, connection)
            idle_share = _idle_share(connection, scheduler.pid)
    yield Figure(
        "relay_latency_p50_ms", statistics.median(latencies), "from commit of a single row to its receipt"
    )
    yield Figure("relay_latency_p99_ms", percentile(latencies, 0.99), "the same, 99th percentile")
    yield Figure(
        "scheduler_idle_cpu_share", idle_share, "of one core: an idle scheduler and its PostgreSQL sessions"
    )


def _drain(database: DatabaseSettings, kafka: KafkaSettings, connection: psycopg.Connection) -> float:
    relay = OutboxRelay(database, ConfirmingProducer(kafka, "relay"), Event())
    started = monotonic()
    while _waiting(connection):
        relay.run_once()
    seconds = monotonic() - started
    relay.close()
    return seconds


def _single_rows(kafka: KafkaSettings, connection: psycopg.Connection) -> list[float]:
    consumer = _consumer_at_end(kafka)
    connection.execute(_FILL, (1,))
    assert consumer.poll(30) is not None
    latencies = []
    for _ in range(SINGLE_ROWS):
        sleep(random.uniform(0.02, 0.12))
        connection.execute(_FILL_AND_WAKE, (1,))
        committed = monotonic()
        assert consumer.poll(30) is not None
        latencies.append((monotonic() - committed) * 1000)
    consumer.close()
    return latencies


def _idle_share(connection: psycopg.Connection, scheduler: int) -> float:
    sessions = connection.execute(
        "select pid from pg_stat_activity where application_name like 'mizan-%' and datname = current_database()"
    ).fetchall()
    processes = [psutil.Process(pid) for pid in (scheduler, *(pid for (pid,) in sessions))]
    before = sum(_cpu(process) for process in processes)
    sleep(IDLE_S)
    return round((sum(_cpu(process) for process in processes) - before) / IDLE_S, 4)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _consumer_at_end(kafka: KafkaSettings) -> Consumer:
    topic = clients.topic_name(kafka, PAYMENT_INTENT_EVENTS.name)
    consumer = clients.consumer(kafka, f"bench-{uuid4()}")
    ends = [
        TopicPartition(
            topic, number, consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1]
        )
        for number in range(PAYMENT_INTENT_EVENTS.partitions)
    ]
    consumer.assign(ends)
    return consumer


def _waiting(connection: psycopg.Connection) -> bool:
    return connection.execute("select from outbox limit 1").rowcount > 0
