"""The engines as child processes: started, killed, suspended, restarted, and never orphaned."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from stack.broker import BrokerPorts
from stack.engines import Engines, embedded_engines
from stack.errors import StackError
from stack.kafka import KafkaCluster, count_brokers
from stack.processes import is_running
from tests.waiting import eventually


def make_topic(servers: str, copies: int = 1) -> str:
    name = f"t-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, 1, copies)])[name].result(30)
    return name


def produce(servers: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume_one(servers: str, topic: str) -> bytes | None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid4().hex,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    try:
        message = consumer.poll(30)
        return message.value() if message is not None and message.error() is None else None
    finally:
        consumer.close()


@pytest.mark.kills
def test_killed_broker_keeps_its_records(killable_engines: Engines) -> None:
    """After SIGKILL and a new start it has the same port and data."""
    servers = killable_engines.kafka_bootstrap_servers
    topic = make_topic(servers)
    produce(servers, topic, b"kept")
    before = killable_engines.kafka.broker(1).pid
    killable_engines.kafka.kill()
    assert count_brokers(servers) == 0
    killable_engines.kafka.start()
    assert killable_engines.kafka.broker(1).pid != before
    assert killable_engines.kafka_bootstrap_servers == servers
    assert consume_one(servers, topic) == b"kept"


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
    killable_engines.kafka.suspend()
    assert count_brokers(killable_engines.kafka_bootstrap_servers) == 0
    killable_engines.kafka.resume()
    assert eventually(lambda: count_brokers(killable_engines.kafka_bootstrap_servers)) == 1


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
        servers = engines.kafka_bootstrap_servers
        topic = make_topic(servers, copies=3)
        engines.kafka.kill(2)
        produce(servers, topic, b"without the second")
        engines.kafka.start(2)
        engines.kafka.kill(1)
        assert consume_one(servers, topic) == b"without the second"
