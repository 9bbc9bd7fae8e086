"""Fixtures of keys in a KMS: the stand-in, settings that lead to it, and boxes of processes that use it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from shared.platform.encryption import (
    SecretBox,
)
from shared.platform.keys.data_keys import DataKeys
from shared.platform.keys.envelope import EnvelopeCipher
from shared.platform.keys.transit_client import TransitClient
from shared.platform.settings import Environment, KeyPurpose, Settings, read_settings
from tests.transit_server import TransitServer

LOCAL = Fernet.generate_key().decode()
CONTEXT = "row/1"
WEBHOOKS, PROVIDERS = KeyPurpose.WEBHOOK_SECRETS, KeyPurpose.PROVIDER_CREDENTIALS
NAME = "mizan-webhook-secrets"


@pytest.fixture
def kms() -> Iterator[TransitServer]:
    with TransitServer().running() as server:
        yield server


@pytest.fixture
def plain_settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:9/mizan")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9")
    return replace(read_settings(), keys={}, secret_keys=())


@pytest.fixture
def settings(plain_settings: Settings, kms: TransitServer, tmp_path: Path) -> Settings:
    return replace(
        plain_settings, environment=Environment.PRODUCTION, transit=kms.settings(tmp_path, timeout_s=5.0)
    )


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


MakeBox = Callable[..., SecretBox]


@pytest.fixture
def make_box(kms: TransitServer, tmp_path: Path) -> MakeBox:
    """Return a box of webhook secrets, as one more process has it. Data keys stay in memory for 100 s."""

    def make(clock: Clock | None = None, keys: tuple[str, ...] = (), **more: object) -> SecretBox:
        settings = kms.settings(tmp_path, **{"cache_s": 100.0, "timeout_s": 5.0, **more})
        data_keys = DataKeys(TransitClient(settings), NAME, settings, clock or Clock())
        return SecretBox(keys, envelopes=EnvelopeCipher(data_keys), uses_envelopes=True)

    return make


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls after a failed one are made at once."""
    monkeypatch.setattr("shared.platform.keys.transit_client._AWAY_S", 0.0)
