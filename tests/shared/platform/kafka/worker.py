"""A consumer process for tests that kill it: it writes the number of each handled event to a file."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import sleep
from types import MappingProxyType

from shared.platform.kafka.handlers import BatchHandler
from shared.platform.kafka.records import Task
from shared.platform.settings import KafkaSettings
from tests.shared.platform.kafka.harness import Kafka, seq


def main(bootstrap_servers: str, topic_prefix: str, login: str, output: str) -> None:
    client = MappingProxyType({**json.loads(login), "log_level": "0"})
    kafka = Kafka(KafkaSettings(bootstrap_servers, topic_prefix, 1, client))
    with Path(output).open("a") as file:

        def handle(tasks: Sequence[Task]) -> None:
            file.write("".join(f"{seq(task)}\n" for task in tasks))
            file.flush()
            sleep(0.02)  # the work itself, so that a kill hits a batch in progress

        kafka.loop(BatchHandler(handle, size=20)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
