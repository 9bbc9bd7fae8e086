"""The clients of Kafka take the settings of the environment, each what it knows."""

import gc
import logging
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from weakref import ref

import pytest
from confluent_kafka.admin import AdminClient

from shared.platform.kafka import clients
from shared.platform.settings import KafkaSettings
from tests.waiting import eventually

_NOWHERE = KafkaSettings("127.0.0.1:1")

_CLIENTS: dict[str, Callable[[KafkaSettings], Any]] = {
    "producer": lambda settings: clients.producer(settings, "test"),
    "admin": lambda settings: clients.admin(settings, "test"),
    "consumer": lambda settings: clients.consumer(settings, "test"),
}


@pytest.mark.parametrize("kind", _CLIENTS)
def test_settings_for_the_other_kind_of_client_are_ignored_without_a_warning(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """KAFKA_CLIENT_… is for all clients. Other lines of librdkafka are still logged: that no broker is there."""
    settings = replace(
        _NOWHERE, client=MappingProxyType({"session.timeout.ms": "6000", "batch.size": "100000"})
    )
    with caplog.at_level(logging.DEBUG, logger="mizan.kafka.client"):
        client = _CLIENTS[kind](settings)

        def has_logged() -> bool:
            client.poll(0.05)
            return "Connection refused" in caplog.text

        eventually(has_logged)
    assert "will be ignored" not in caplog.text


def test_admin_client_is_not_destroyed_by_its_own_thread() -> None:
    """An answer comes while the client is garbage, and the garbage is collected there: librdkafka would abort us."""
    collected = []

    def drop_client() -> "ref[AdminClient]":
        client = clients.admin(_NOWHERE, "test")
        client.cycle = client  # type: ignore[attr-defined]
        (answer,) = client.delete_topics(["nothing"], request_timeout=1).values()
        answer.add_done_callback(lambda _: collected.append(gc.collect()))
        return ref(client)

    gc.disable()
    try:
        dropped = drop_client()
        eventually(lambda: collected)
    finally:
        gc.enable()
    clients.admin(_NOWHERE, "test")
    assert dropped() is None
