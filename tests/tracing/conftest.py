"""A recorder in memory, and the worlds of the services that traces go through."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from shared.platform.settings import WebhookSettings
from tests.checkout.conftest import bank, world
from tests.checkout.world import CheckoutWorld
from tests.tracing.recorded import Recorded, recording
from tests.tracing.world import TracedWorld
from tests.webhooks.conftest import DELAYS, receiver
from tests.webhooks.receivers import Receiver

__all__ = ["bank", "receiver", "world"]


@pytest.fixture
def spans() -> Iterator[Recorded]:
    """Tracing is on, in this process."""
    with recording() as recorded:
        yield recorded


@pytest.fixture
def shop(world: CheckoutWorld, receiver: Receiver) -> TracedWorld:
    world.settings = replace(
        world.settings, webhooks=WebhookSettings(retry_delays=DELAYS, allow_private=True)
    )
    return TracedWorld(world, receiver)
