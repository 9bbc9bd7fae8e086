"""Webhook commands of operators: pause, resume, resend a delivery."""

from uuid import UUID, uuid4

import pytest

from services.webhooks.pipeline.intake import create_deliveries
from shared.domain.deliveries.resend import MAX_PER_MINUTE
from shared.domain.messages import ResendRequested, decode
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox
from tests.mizan.conftest import KEY, Mizan
from tests.webhooks.merchants import Merchant, webhook_events


@pytest.fixture
def merchant(database: Database) -> Merchant:
    return Merchant(database, SecretBox((KEY,)), "https://shop.example/hooks")


def paused(database: Database, merchant: Merchant) -> bool:
    with database.cursor() as cursor:
        cursor.execute(
            "select from applications where id = %s and webhooks_paused_at is not null", (merchant.id,)
        )
        return cursor.rowcount == 1


def test_webhooks_are_paused_and_resumed(run: Mizan, database: Database, merchant: Merchant) -> None:
    """Both commands can be repeated."""
    for _ in range(2):
        assert run("app", "pause-webhooks", str(merchant.id)).exit_code == 0
        assert paused(database, merchant)
    for _ in range(2):
        assert run("app", "resume-webhooks", str(merchant.id)).exit_code == 0
        assert not paused(database, merchant)


def test_resend_requests_the_delivery(run: Mizan, database: Database, merchant: Merchant) -> None:
    delivery_id = _delivered(database, merchant)
    assert run("resend", str(delivery_id)).exit_code == 0
    with database.cursor() as cursor:
        requests = cursor.execute(
            "select key, payload from outbox where topic = 'webhooks.resend'"
        ).fetchall()
    ((key, payload),) = requests
    request_id = decode(payload.encode())
    assert isinstance(request_id, ResendRequested)
    assert (key, request_id.delivery_id, request_id.application_id) == (
        str(delivery_id),
        delivery_id,
        merchant.id,
    )


def test_refused_resend_is_one_clear_line(run: Mizan, database: Database, merchant: Merchant) -> None:
    delivery_id = _delivered(database, merchant)
    assert "no delivery" in run("resend", str(uuid4())).stderr
    assert "must be a delivery's id" in run("resend", "nonsense").stderr
    for _ in range(MAX_PER_MINUTE):
        assert run("resend", str(delivery_id)).exit_code == 0
    answer = run("resend", str(delivery_id))
    told = "Error: this delivery was resent 5 times within a minute; wait a minute\n"
    assert (answer.exit_code, answer.stderr) == (1, told)
    answer = run("dead", "replay", str(delivery_id))
    assert (answer.exit_code, "wait a minute" in answer.stderr) == (1, True)
    run("app", "pause-webhooks", str(merchant.id))
    assert "paused" in run("resend", str(delivery_id)).stderr
    merchant.set_url(None)
    answer = run("resend", str(delivery_id))
    assert answer.exit_code == 1
    assert "no webhook URL" in answer.stderr


def _delivered(database: Database, merchant: Merchant) -> UUID:
    delivery_id = merchant.create_event()
    with database.cursor() as cursor:
        create_deliveries(cursor, webhook_events(database))
    return delivery_id
