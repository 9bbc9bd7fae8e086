"""The shop's webhook endpoint (§6.5): webhooks of Mizan are stored and processed once, others are refused."""

import json
from threading import Thread
from uuid import uuid4

import pytest

from tests.shop.conftest import SECRET, ShopInTest, sign
from tests.waiting import eventually

_UUID = b"019b3c5e-6f1a-7c40-9d27-5b8e0c4a1f63"


def test_webhook_is_acknowledged_first_and_processed_afterwards(shop: ShopInTest) -> None:
    """A kill before the processing loses nothing, and a kill after it repeats nothing. # §6.5, 3"""
    page = shop.buy()
    shop.mizan.only_intent()["status"] = "succeeded"
    assert shop.send_event().status_code == 200
    assert shop.state(page) == "unpaid"

    shop.start()
    shop.work()
    assert shop.state(page) == "fulfilled"
    shop.start()
    shop.work()
    assert shop.steps(page).count("fulfilled") == 1


def test_duplicate_delivery_is_acknowledged_and_changes_nothing(shop: ShopInTest) -> None:
    page = shop.buy()
    shop.mizan.only_intent()["status"] = "succeeded"
    delivery = {
        "id": "d-1",
        "event": "payment_intent.succeeded",
        "data": {"uuid": shop.mizan.only_intent()["uuid"]},
    }
    for _ in range(3):
        assert shop.send(delivery).status_code == 200
        shop.work()
    assert shop.steps(page).count("fulfilled") == shop.steps(page).count("webhook") == 1
    assert shop.steps(page).count("webhook_again") == 2


@pytest.mark.parametrize("signature", ["", "0" * 64, "ü", "sha256=abc"])
def test_forged_webhook_is_refused_before_it_is_parsed(shop: ShopInTest, signature: str) -> None:
    page = shop.buy()
    shop.mizan.only_intent()["status"] = "succeeded"
    body = json.dumps(
        {"id": "<script>d</script>", "event": "x", "data": {"uuid": shop.mizan.only_intent()["uuid"]}}
    ).encode()
    answer = shop.send(body, **{"Service-Signature": signature})
    assert answer.status_code == 401
    shop.work()
    assert shop.state(page) == "unpaid"
    assert "signature does not match" in shop.admin()
    assert "<script>d" not in shop.browser.get("/admin").text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"null",
        b'{"id": 7, "event": "x", "data": {"uuid": "%s"}}' % _UUID,
        b'{"id": "\\ud800", "event": "x", "data": {"uuid": "%s"}}' % _UUID,
        b'{"id": "d", "event": "x", "data": "u"}',
        b'{"id": "d", "event": "x", "data": {"uuid": "../../readyz"}}',
        b'{"id": "%s", "event": "x", "data": {"uuid": "%s"}}' % (b"d" * 200, _UUID),
        b"[" * 10_000,
        b"\xff\xfe",
    ],
)
def test_signed_but_malformed_webhook_is_400(shop: ShopInTest, body: bytes) -> None:
    assert shop.send(body).status_code == 400
    assert shop.rows("select * from inbox") == []


def test_too_large_webhook_is_413(shop: ShopInTest) -> None:
    assert shop.send(b"x" * 20_000).status_code == 413


def test_webhooks_of_unknown_intents_are_acknowledged_and_dropped(shop: ShopInTest) -> None:
    """Such as test deliveries."""
    stranger = str(uuid4())
    assert shop.send_event(uuid=stranger).status_code == 200
    shop.work()
    assert shop.mizan.requested_paths == [f"/api/v1/payment-intents/{stranger}"]
    assert shop.rows("select * from inbox where work_at is not null") == []


def test_webhook_of_our_intent_that_mizan_does_not_find_is_processed_later(shop: ShopInTest) -> None:
    """A webhook is dropped only if its uuid belongs to none of our payments: a wrong 404 loses nothing."""
    page = shop.buy()
    intent = shop.mizan.only_intent()
    intent["status"] = "succeeded"
    shop.send_event()
    shop.mizan.intents.clear()
    shop.work()
    assert len(shop.rows("select * from inbox where work_at is not null")) == 1
    shop.mizan.intents[intent["uuid"]] = intent
    shop.make_due()
    shop.work()
    assert shop.state(page) == "fulfilled"
    assert shop.rows("select * from inbox where work_at is not null") == []


def test_old_and_new_secret_are_accepted_after_a_roll(shop: ShopInTest) -> None:
    """Before the shop has the new secret, it refuses such webhooks, and the admin page says what to do. # §6.6"""
    shop.buy()
    intent = shop.mizan.only_intent()["uuid"]

    def send(delivery: str, secret: str) -> int:
        content = {"id": delivery, "event": "payment_intent.succeeded", "data": {"uuid": intent}}
        return shop.send(content, secret).status_code

    assert send("d-1", "whsec_second-one") == 401
    assert "paste the new one below" in shop.admin()
    shop.form("/admin", "/admin/secret", secret=" whsec_second-one ")
    assert (send("d-1", "whsec_second-one"), send("d-2", SECRET)) == (200, 200)
    assert "paste the new one below" not in shop.admin()


def test_hanging_endpoint_leaves_the_shop_usable(shop: ShopInTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four requests hang, more are rejected at once, and changing the switch releases all of them."""
    monkeypatch.setattr("examples.shop.endpoint_debug._HANG_S", 60.0)
    shop.form("/admin", "/admin/switch", behaviour="hang")
    answers: list[int] = []
    hanging = [Thread(target=lambda: answers.append(_send_separately(shop)), daemon=True) for _ in range(6)]
    for thread in hanging:
        thread.start()
    eventually(lambda: len(answers) == 2)
    assert shop.browser.get("/").status_code == 200
    shop.form("/admin", "/admin/switch", behaviour="good")
    for thread in hanging:
        thread.join(10)
    assert answers == [503] * 6
    assert shop.rows("select * from inbox") == []


def _send_separately(shop: ShopInTest) -> int:
    body = b'{"id": "d", "event": "x", "data": {"uuid": "%s"}}' % _UUID
    headers = {"Service-Signature": sign(body)}
    return shop.shop.app.test_client().post("/webhooks/mizan", data=body, headers=headers).status_code
