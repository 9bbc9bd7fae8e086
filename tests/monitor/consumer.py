"""A consumer in its own process, so that a test can freeze it. It commits every record that it polls."""

import json
import sys
from types import MappingProxyType

from shared.platform.kafka import clients
from shared.platform.settings import KafkaSettings


def main(bootstrap_servers: str, topic_prefix: str, login: str, topic: str) -> None:
    client = MappingProxyType({**json.loads(login), "session.timeout.ms": "45000", "log_level": "0"})
    settings = KafkaSettings(bootstrap_servers, topic_prefix, 1, client)
    consumer = clients.consumer(settings, topic)
    consumer.subscribe([clients.topic_name(settings, topic)])
    while True:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            consumer.commit(message=message, asynchronous=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
