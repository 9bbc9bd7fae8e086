"""A STACK_DIR of the version before, with one key for everything, moves over by itself."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import requests
from cryptography.fernet import Fernet

from shared.platform.settings import DatabaseSettings, KafkaSettings
from tests.checkout.customer import Customer
from tests.engines import TestEngines
from tests.stack.running_stack import PROJECT, RunningStack, whole_stack
from tests.waiting import eventually
from tests.webhooks.merchants import is_signed
from tests.webhooks.receivers import Receiver

pytestmark = [pytest.mark.timeout(400), pytest.mark.stack]


def _mizan(stack_dir: Path, *arguments: str, **more: str) -> Any:
    environment = {**os.environ, "STACK_DIR": str(stack_dir), **more}  # noqa: TID251 - the child gets ours
    done = subprocess.run(
        [PROJECT / "bin" / "mizan", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _pay(stack: RunningStack, made: dict[str, str], reference: str) -> None:
    headers = {"X-API-Key": made["api_key"], "Authorization": f"Bearer {made['access_token']}"}
    body = {"merchant_reference": reference, "amount": 25_000, "currency": "LYD"}
    url = f"{stack.read()['api_base_url']}/payment-intents"
    intent = requests.post(url, json=body, headers=headers, timeout=30).json()["data"]
    customer = Customer(intent["checkout_url"])
    customer.pay_by_card("4242424242424242")
    customer.close()


def test_secrets_of_the_one_key_are_used_moved_and_then_need_it_no_more(
    tmp_path: Path, engines: TestEngines, database_settings: DatabaseSettings, all_topics: KafkaSettings
) -> None:
    """Webhooks are signed with a secret that the old key has encrypted. After `mizan keys reseal` it can be removed."""
    old, directory = Fernet.generate_key().decode(), tmp_path / "stack"
    directory.mkdir()
    (directory / "secret_keys").write_text(old + "\n")
    places = engines, database_settings.url, all_topics.topic_prefix
    before = {"DATABASE_URL": database_settings.url, "MIZAN_SECRET_KEYS": old}
    with Receiver() as shop:
        words = ("app", "create", "--name", "Shop", "--webhook-url", shop.url, "--json")
        made = _mizan(directory, *words, WEBHOOK_ALLOW_PRIVATE="true", **before)
        with whole_stack(directory, *places) as stack:
            assert "the one key of earlier versions, is still read" in stack.output
            _pay(stack, made, "1")
            eventually(lambda: len(shop.requests) == 1)
            rows = _mizan(directory, "keys", "reseal", "--json")["tables"]
            assert [(row["key 2"], row["no key"]) for row in rows] == [(0, 0)] * 3
        (directory / "secret_keys").unlink()
        with whole_stack(directory, *places) as stack:
            assert "earlier versions" not in stack.output
            assert "secret_keys_file" not in stack.read()
            _pay(stack, made, "2")
            eventually(lambda: len(shop.requests) == 2)
    for webhook in shop.requests:
        assert is_signed(webhook.body, webhook.headers["service-signature"], made["webhook_secret"])
