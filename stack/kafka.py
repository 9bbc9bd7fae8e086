"""The embedded Kafka cluster: one broker or three, known by its id and found ready by a real request."""

import base64
import json
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from stack.broker import Broker, BrokerPorts
from stack.errors import StackError
from stack.waiting import wait_until

START_SECONDS = 120


class KafkaCluster:
    """As many brokers as there are `ports`, below `directory`. Whoever starts their commands owns them."""

    def __init__(self, directory: Path, ports: Sequence[BrokerPorts], jars: Sequence[Path]) -> None:
        self.directory = directory.resolve()
        cluster_id = self._cluster_id(len(ports))
        self.brokers = [
            Broker(number, self.directory / str(number), cluster_id, tuple(ports), tuple(jars))
            for number in range(1, len(ports) + 1)
        ]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    def prepare(self) -> None:
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            list(pool.map(Broker.prepare, self.brokers))

    def wait_ready(self, log: Path, running: Callable[[], bool]) -> None:
        wait_until(self._answers, name="Kafka", log=log, seconds=START_SECONDS, running=running)

    def _answers(self) -> bool:
        # Each is asked itself: for a while the others still count a broker that has just been killed.
        return all(count_brokers(broker.address) == len(self.brokers) for broker in self.brokers)

    def _cluster_id(self, brokers: int) -> str:
        """The id this directory was made with; storage of another cluster or size must not be mixed in."""
        path = self.directory / "cluster.json"
        if path.exists():
            known = json.loads(path.read_text())
            if known["brokers"] != brokers:
                raise StackError(
                    f"{self.directory} was made with BROKERS={known['brokers']}, not {brokers}.",
                    f"Start with BROKERS={known['brokers']}, or use another STACK_DIR.",
                )
            return str(known["cluster_id"])
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.directory.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cluster_id": cluster_id, "brokers": brokers}) + "\n")
        return cluster_id


def count_brokers(bootstrap_servers: str) -> int:
    """How many brokers answer as one cluster; 0 when none does."""
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap_servers,
        "log_level": 0,
        "socket.timeout.ms": 2000,
    }
    try:
        return len(AdminClient(settings).list_topics(timeout=2).brokers)
    except KafkaException:
        return 0
