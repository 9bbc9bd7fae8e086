"""The engines as child processes: started, killed, suspended, restarted, and never orphaned."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from shared.domain.kafka_principals import ADMIN
from stack.broker import BrokerPorts
from stack.engines import EmbeddedKafka, Engines, embedded_engines
from stack.errors import StackError
from stack.kafka import KafkaCluster, count_brokers
from stack.processes import is_running
from tests.waiting import eventually

Client = Mapping[str, str]


def admin_client(kafka: EmbeddedKafka) -> Client:
    return {"bootstrap.servers": kafka.bootstrap_servers, "log_level": "0", **kafka.logins.client(ADMIN.name)}


def make_topic(client: Client, copies: int = 1) -> str:
    name = f"t-{uuid4().hex[:8]}"
    admin = AdminClient(dict(client))
    admin.create_topics([NewTopic(name, 1, copies)])[name].result(30)
    return name


def produce(client: Client, topic: str, value: bytes) -> None:
    producer = Producer({**client, "acks": "all"})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume_one(client: Client, topic: str) -> bytes | None:
    consumer = Consumer({**client, "group.id": uuid4().hex, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(30)
        return message.value() if message is not None and message.error() is None else None
    finally:
        consumer.close()


def count(client: Client) -> int:
    return count_brokers(client["bootstrap.servers"], client)


@pytest.mark.kills
def test_killed_broker_keeps_its_records(killable_engines: Engines) -> None:
    """After SIGKILL and a new start it has the same port and data."""
    client = admin_client(killable_engines.kafka)
    topic = make_topic(client)
    produce(client, topic, b"kept")
    before = killable_engines.kafka.broker(1).pid
    killable_engines.kafka.kill()
    assert count(client) == 0
    killable_engines.kafka.start()
    assert killable_engines.kafka.broker(1).pid != before
    assert admin_client(killable_engines.kafka) == client
    assert consume_one(client, topic) == b"kept"


@pytest.mark.kills
def test_killed_database_keeps_its_rows(killable_engines: Engines) -> None:
    """SIGKILL of the server and all its workers loses nothing that was committed."""
    with psycopg.connect(killable_engines.database_url) as connection:
        connection.execute("create table kept (id int)")
        connection.execute("insert into kept values (1)")
    killable_engines.postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(killable_engines.database_url)
    killable_engines.postgres.start()
    with psycopg.connect(killable_engines.database_url) as connection:
        assert connection.execute("select id from kept").fetchall() == [(1,)]


@pytest.mark.kills
def test_database_restarts_in_place(killable_engines: Engines) -> None:
    """A graceful restart keeps the address."""
    url = killable_engines.database_url
    before = killable_engines.postgres.pid
    killable_engines.postgres.restart()
    assert killable_engines.postgres.pid != before
    assert killable_engines.database_url == url
    psycopg.connect(url).close()


@pytest.mark.kills
def test_suspended_broker_responds_after_resume(killable_engines: Engines) -> None:
    """A suspended broker accepts connections, but does not respond."""
    client = admin_client(killable_engines.kafka)
    killable_engines.kafka.suspend()
    assert count(client) == 0
    killable_engines.kafka.resume()
    assert eventually(lambda: count(client)) == 1


@pytest.mark.kills
def test_engines_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    """kill -9 of a test run leaves no PostgreSQL and no Kafka running."""
    script = (
        "import json, pathlib, sys, time\n"
        "from stack.engines import embedded_engines\n"
        "with embedded_engines(pathlib.Path(sys.argv[1])) as engines:\n"
        "    print(json.dumps([engines.postgres.pid, engines.kafka.broker(1).pid]), flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "engines")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        servers = [psutil.Process(pid) for pid in json.loads(process.stdout.readline())]
        assert all(is_running(server) for server in servers)
        os.kill(process.pid, signal.SIGKILL)
    assert eventually(lambda: not any(is_running(server) for server in servers))


def test_directory_of_another_cluster_size_is_refused(tmp_path: Path) -> None:
    """Data made with one broker is not started with three."""
    KafkaCluster(tmp_path, [BrokerPorts(1, 2)], [])
    with pytest.raises(StackError, match="was created with BROKERS=1, not 3"):
        KafkaCluster(tmp_path, [BrokerPorts(1, 2), BrokerPorts(3, 4), BrokerPorts(5, 6)], [])


@pytest.mark.cluster
@pytest.mark.kills
def test_three_brokers_survive_the_loss_of_one(tmp_path: Path) -> None:
    """With three replicas, two of them in sync, no acknowledged record is lost and new ones are accepted."""
    with embedded_engines(tmp_path, brokers=3) as engines:
        client = admin_client(engines.kafka)
        topic = make_topic(client, copies=3)
        engines.kafka.kill(2)
        produce(client, topic, b"without the second")
        engines.kafka.start(2)
        engines.kafka.kill(1)
        assert consume_one(client, topic) == b"without the second"
