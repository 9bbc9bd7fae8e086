"""Webhooks with exactly the keys of their purpose, and with keys of a KMS that is away at times."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.webhooks.pipeline import handler
from shared.domain.topics import DEAD_LETTERS
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from shared.platform.kafka.progress import RETRIES
from shared.platform.keys import open_keys
from shared.platform.settings import KafkaSettings, KeyPurpose, Settings
from tests.process_keys import BOXES, with_own_keys
from tests.topics import TopicReader
from tests.transit_server import TransitServer
from tests.waiting import eventually
from tests.webhooks.conftest import FIRST_TRY, MakeReceiver, Webhooks
from tests.webhooks.merchants import Merchant, is_signed
from tests.webhooks.receivers import Receiver


@pytest.fixture
def kms() -> Iterator[TransitServer]:
    with TransitServer().running() as server:
        yield server


@pytest.fixture
def kms_settings(webhook_settings: Settings, kms: TransitServer, tmp_path: Path) -> Settings:
    return replace(webhook_settings, secret_keys=(), transit=kms.settings(tmp_path, timeout_s=5.0))


def test_webhook_is_signed_with_the_keys_of_its_purpose_alone(
    webhooks: Webhooks, database: Database, receiver: Receiver
) -> None:
    merchant = Merchant(database, BOXES[KeyPurpose.WEBHOOK_SECRETS], receiver.url)
    merchant.create_event()
    with Webhooks(with_own_keys(webhooks.settings, "webhooks")).running_with_relay(*FIRST_TRY):
        webhook = eventually(lambda: receiver.requests)[0]
    assert is_signed(webhook.body, webhook.headers["service-signature"], merchant.secret)


def test_webhook_whose_key_cannot_be_unwrapped_waits_and_the_others_go_on(
    kms_settings: Settings,
    kms: TransitServer,
    all_topics: KafkaSettings,
    database: Database,
    make_receiver: MakeReceiver,
) -> None:
    """While the KMS is away. When it is back the delivery is sent, as its first try, and nothing is a dead letter."""
    waiting_receiver = make_receiver()
    known = Merchant(database, _new_process_box(kms_settings), make_receiver().url)
    waiting = Merchant(database, _new_process_box(kms_settings), waiting_receiver.url)
    with Webhooks(kms_settings).running_with_relay(*FIRST_TRY, "deliver"):
        known.create_event()
        eventually(lambda: known.statuses() == {"succeeded": 1})
        pauses = _count_pauses()
        kms.is_away = True
        late = waiting.create_event()
        kms.calls.clear()
        eventually(lambda: kms.count("decrypt") >= 1)
        for _count in range(10):
            known.create_event()
        eventually(lambda: known.statuses() == {"succeeded": 11})
        assert (waiting.status(late), waiting.tries(late), waiting_receiver.requests) == ("pending", [], [])
        # More than the three failures after which a record would be a dead letter.
        eventually(lambda: kms.count("decrypt") >= 4)
        assert waiting.status(late) == "pending"
        assert _count_pauses() == pauses
        kms.is_away = False
        eventually(lambda: waiting.statuses() == {"succeeded": 1})
    assert len(waiting.tries(late)) == 1
    (webhook,) = waiting_receiver.requests
    assert is_signed(webhook.body, webhook.headers["service-signature"], waiting.secret)
    reader = TopicReader(all_topics, DEAD_LETTERS.name)
    assert reader.read_to_end() == []
    reader.close()


@pytest.fixture
def merchant_with_kms(database: Database, kms_settings: Settings, receiver: Receiver) -> Merchant:
    return Merchant(database, _new_process_box(kms_settings), receiver.url)


@pytest.fixture
def one_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than one delivery waits in the pipeline for its key."""
    monkeypatch.setattr(handler, "_MAX_WITHOUT_KEY", 1)


@pytest.mark.usefixtures("one_may_wait")
def test_consumer_pauses_if_too_many_deliveries_wait_for_their_keys(
    kms_settings: Settings,
    kms: TransitServer,
    all_topics: KafkaSettings,
    merchant_with_kms: Merchant,
    receiver: Receiver,
) -> None:
    """As in any other outage: they are tried again for as long as it takes, and none is a dead letter."""
    merchant = merchant_with_kms
    kms.is_away = True
    pauses = _count_pauses()
    for _count in range(5):
        merchant.create_event()
    with Webhooks(kms_settings).running_with_relay(*FIRST_TRY, "deliver"):
        eventually(lambda: _count_pauses() >= pauses + 4)
        assert receiver.requests == []
        kms.is_away = False
        eventually(lambda: merchant.statuses() == {"succeeded": 5})
    assert len(receiver.requests) == 5
    reader = TopicReader(all_topics, DEAD_LETTERS.name)
    assert reader.read_to_end() == []
    reader.close()


def _count_pauses() -> float:
    """Return how often consumers of this process have paused after a transient error."""
    samples = [sample for metric in RETRIES.collect() for sample in metric.samples]
    return sum(sample.value for sample in samples if sample.labels["kind"] == "transient")


def _new_process_box(settings: Settings) -> SecretBox:
    """Return a box with a data key of its own, as another process has it."""
    return open_keys(settings).open_box(KeyPurpose.WEBHOOK_SECRETS)
