"""Fixtures: a span recorder in memory, and the services that traces go through."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from shared.platform.settings import WebhookSettings
from tests.checkout.conftest import bank, world
from tests.checkout.world import CheckoutWorld
from tests.database_roles import open_as
from tests.tracing.recorded_spans import RecordedSpans, recording
from tests.tracing.traced_services import TracedServices
from tests.webhooks.conftest import DELAYS, receiver
from tests.webhooks.receivers import Receiver

__all__ = ["bank", "receiver", "world"]


@pytest.fixture
def spans() -> Iterator[RecordedSpans]:
    """Turn tracing on in this process, and record its spans."""
    with recording() as recorded:
        yield recorded


@pytest.fixture
def shop(world: CheckoutWorld, receiver: Receiver) -> Iterator[TracedServices]:
    world.settings = replace(
        world.settings, webhooks=WebhookSettings(retry_delays=DELAYS, allow_private=True)
    )
    with open_as("mizan_api", world.settings.database, "api") as api_database:
        yield TracedServices(world, api_database, receiver)
