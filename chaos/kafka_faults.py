"""Faults of Kafka's data: a topic that is deleted, and a consumer group that is reset to the beginning."""

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from chaos.process_faults import Pause
from chaos.supervision import Supervision
from shared.domain.kafka_principals import ADMIN
from shared.domain.topics import ALL_TOPICS
from stack.database_roles import NO_DATABASE
from stack.kafka_passwords import KafkaLogins
from stack.options import Options
from stack.programs import PROJECT, common_environment, kafka_environment

_REQUEST_SECONDS = 15.0
_PATIENCE_SECONDS = 60.0


class KafkaFaultError(Exception):
    """Kafka did not do what the fault needs, in time."""


class KafkaFaults:
    def __init__(
        self, options: Options, bootstrap_servers: str, supervision: Supervision, pause: Pause
    ) -> None:
        logins = KafkaLogins(options.directory / "kafka" / "passwords")
        self._client: dict[str, str | int | float | bool] = {
            **logins.client(ADMIN.name),
            "bootstrap.servers": bootstrap_servers,
            "client.id": "operator",
            "log_level": "0",
        }
        self._environment = {
            **common_environment(options),
            **kafka_environment(options, bootstrap_servers, logins, ADMIN.name),
            "DATABASE_URL": NO_DATABASE,
        }
        self._log = options.directory / "logs" / "operator.log"
        self._supervision = supervision
        self._pause = pause

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and create it again a little later with `mizan topics`, as an operator would."""
        admin = AdminClient(self._client)
        for deletion in admin.delete_topics([topic], operation_timeout=_REQUEST_SECONDS).values():
            deletion.result(_REQUEST_SECONDS)
        try:
            self._pause(2)
        finally:
            self.create_topics()

    def create_topics(self) -> None:
        """Run `mizan topics` until it succeeds. Raises KafkaFaultError after a minute."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            done = subprocess.run(
                [sys.executable, "-m", "mizan", "topics", "--json"],
                env=self._environment, cwd=PROJECT, capture_output=True, text=True, check=False,
                timeout=_PATIENCE_SECONDS,
            )  # fmt: skip
            with self._log.open("a") as log:
                print(f"mizan topics ended with {done.returncode}. {done.stderr.strip()}", file=log)
            if done.returncode == 0:
                return
            if time.monotonic() > deadline:
                raise KafkaFaultError(f"mizan topics: {done.stderr.strip()[-300:]}")
            time.sleep(1)

    def reset_group(self, group: str, members: Sequence[str]) -> None:
        """Commit the first offset of each partition for a group. Its members are stopped meanwhile: Kafka insists."""
        try:
            for member in members:
                self._supervision.stop(member)
            self._commit_beginning(group)
        finally:
            for member in members:
                self._supervision.start(member)

    def _commit_beginning(self, group: str) -> None:
        """Try until the group has no members: the session of one that was killed lasts. Raises KafkaFaultError."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        settings = {**self._client, "group.id": group, "enable.auto.commit": False}
        with closing(Consumer(settings)) as consumer:
            while True:
                try:
                    consumer.commit(offsets=_first_offsets(consumer, group), asynchronous=False)
                except KafkaException as error:
                    if time.monotonic() > deadline:
                        raise KafkaFaultError(f"{group} cannot be reset: {error}") from error
                    time.sleep(0.5)
                else:
                    return


def _first_offsets(consumer: Consumer, group: str) -> list[TopicPartition]:
    topic = next(topic.name for topic in ALL_TOPICS if topic.group == group)
    found = consumer.list_topics(topic, timeout=_REQUEST_SECONDS).topics[topic]
    partitions = [TopicPartition(topic, number) for number in found.partitions]
    first = [consumer.get_watermark_offsets(each, timeout=_REQUEST_SECONDS)[0] for each in partitions]
    return [
        TopicPartition(topic, each.partition, offset) for each, offset in zip(partitions, first, strict=True)
    ]
