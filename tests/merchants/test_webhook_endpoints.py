"""The example shops of docs/examples comply with §6.5, also with forged requests and failures."""

import json
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from shared.domain.deliveries.signing import build_body
from tests.merchants.conftest import NEW, OLD
from tests.merchants.example_shop import ExampleShop, signed
from tests.merchants.stand_in_api import DROP_CONNECTION, StandInApi
from tests.waiting import eventually

pytestmark = pytest.mark.stack

ORDER, OTHER_ORDER = "order-1042", "order-1043"
AMOUNT = 25_500


def test_forged_requests_get_401_and_change_nothing(shop: ExampleShop, api: StandInApi) -> None:
    body = build_body(str(uuid4()), "payment_intent.succeeded", api.intent(ORDER, AMOUNT, "succeeded"))
    right = signed(body, NEW)
    flipped = bytes([body[0], body[1] ^ 1, *body[2:]])
    forged = {
        "a flipped byte": (flipped, right),
        "no header": (body, None),
        "an empty header": (body, b""),
        "too short": (body, right[:-1]),
        "too long": (body, right + b"0"),
        "of 64 characters, not of 64 bytes": (body, b"\xc3\xa9" * 64),
        "not ASCII": (body, b"\xff\xfe\x80" * 21 + b"\xff"),
        "capitals": (body, right.upper()),
        "by another secret": (body, signed(body, "whsec_other")),
        "by the secret without its prefix": (body, signed(body, NEW.removeprefix("whsec_"))),
        "by no secret": (body, signed(body, "")),
    }
    answers = {why: shop.receive(*request) for why, request in forged.items()}
    assert answers == dict.fromkeys(forged, 401)
    assert (shop.files("inbox") | shop.files("done"), api.retrieved) == (set(), [])


def test_signed_garbage_is_refused_and_the_shop_keeps_running(shop: ExampleShop, api: StandInApi) -> None:
    large, no_json, no_event = b'{"pad":"' + b"x" * 1_000_000 + b'"}', b"\xff{", b"[1]"
    upward = build_body(
        "../../paid/order-1042", "payment_intent.succeeded", api.intent(ORDER, AMOUNT, "canceled")
    )
    assert shop.receive(large, signed(large, NEW)) == 413
    assert shop.receive(upward, signed(upward, NEW)) == 400
    assert shop.receive(no_json, signed(no_json, NEW)) == 400
    assert shop.receive(no_event, signed(no_event, NEW)) == 400
    assert shop.send_event(api.intent(ORDER, AMOUNT, "succeeded"), NEW) == 200
    eventually(lambda: shop.files("paid") == {ORDER})


def test_new_and_old_secret_are_accepted_for_the_raw_body(shop: ExampleShop, api: StandInApi) -> None:
    """Also for a body that a JSON library would write differently, and with an unknown field."""
    data = {"uuid": api.intent(ORDER, AMOUNT, "succeeded")}
    event = {"id": str(uuid4()), "event": "payment_intent.succeeded", "data": data, "é/": 1.0}
    body = json.dumps(event, indent=3).encode()
    assert shop.receive(body, signed(body, NEW)) == 200
    assert shop.send_event(api.intent(OTHER_ORDER, 12_000, "succeeded"), OLD) == 200
    eventually(lambda: shop.files("paid") == {ORDER, OTHER_ORDER})


def test_duplicate_delivery_is_processed_once(shop: ExampleShop, api: StandInApi) -> None:
    intent, delivery = api.intent(ORDER, AMOUNT, "succeeded"), str(uuid4())
    with ThreadPoolExecutor(6) as callers:
        answers = list(callers.map(lambda _: shop.send_event(intent, NEW, delivery_id=delivery), range(6)))
    assert answers == [200] * 6
    eventually(lambda: shop.settled() and shop.files("done") == {f"{delivery}.{intent}"})
    retrieved = len(api.retrieved)
    assert shop.send_event(intent, NEW, delivery_id=delivery) == 200  # a resend, much later
    assert shop.send_event(intent, NEW) == 200  # another event of the same order
    eventually(lambda: shop.settled() and len(shop.files("done")) == 2)
    assert shop.log.count(f"fulfil {ORDER}") == 1
    assert len(api.retrieved) == retrieved + 1


def test_webhook_is_acknowledged_first_and_processed_afterwards(shop: ExampleShop, api: StandInApi) -> None:
    intent = api.intent(ORDER, AMOUNT, "succeeded")
    api.responds.clear()
    assert shop.send_event(intent, NEW) == 200
    assert shop.files("paid") == set()
    api.responds.set()
    eventually(lambda: shop.files("paid") == {ORDER})


def test_failed_event_is_kept_for_the_next_recheck(shop: ExampleShop, api: StandInApi) -> None:
    """If the API fails, the event stays in the inbox, and a recheck processes it."""
    intent = api.intent(ORDER, AMOUNT, "succeeded")
    api.failures.append(403)
    assert shop.send_event(intent, NEW) == 200
    eventually(lambda: "stays in the inbox" in shop.log)
    assert (len(shop.files("inbox")), shop.files("paid")) == (1, set())
    assert f"fulfil {ORDER}" in shop.recheck()
    assert (shop.files("inbox"), shop.files("paid")) == (set(), {ORDER})


def test_payment_with_a_wrong_amount_is_not_fulfilled(shop: ExampleShop, api: StandInApi) -> None:
    """And no customer is redirected to pay it (§4.1 rule 4)."""
    intent = api.intent(ORDER, AMOUNT - 1, "succeeded")
    assert shop.send_event(intent, NEW) == 200
    eventually(lambda: f"look into {ORDER}" in shop.log)
    assert shop.pay(ORDER).status_code == 500
    assert (shop.files("paid"), shop.files("intents")) == (set(), set())


def test_status_of_the_intent_decides_and_not_the_event(shop: ExampleShop, api: StandInApi) -> None:
    """For late payments, events out of order, and the unknown uuid of a test delivery."""
    intent = api.intent(ORDER, AMOUNT, "canceled")
    assert shop.send_event(intent, NEW, "payment_intent.succeeded") == 200
    assert shop.send_event(str(uuid4()), NEW) == 200
    eventually(lambda: shop.settled() and len(shop.files("done")) == 2)
    assert shop.files("paid") == set()
    api.intents[intent]["status"] = "succeeded"
    assert shop.send_event(intent, NEW, "payment_intent.canceled") == 200
    eventually(lambda: shop.files("paid") == {ORDER})


@pytest.mark.parametrize("failure", [DROP_CONNECTION, 503])
def test_create_without_a_response_is_repeated_with_the_same_reference(
    shop: ExampleShop, api: StandInApi, failure: int
) -> None:
    """Without a webhook, the return of the customer or a recheck settles the order."""
    api.failures.append(failure)
    answer = shop.pay(ORDER)
    ((uuid, intent),) = api.intents.items()
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{intent['checkout_url']}?lang=en")
    assert api.creates == [
        {
            "merchant_reference": ORDER,
            "amount": AMOUNT,
            "currency": "LYD",
            "description": "Two bags of coffee",
            "return_url": f"https://shop.example/orders/{ORDER}",
        }
    ]
    assert (shop.directory / "intents" / ORDER).read_text() == uuid
    assert shop.page(ORDER) == "requires_payment_method"
    intent["status"] = "succeeded"
    output = shop.page(ORDER) if failure == DROP_CONNECTION else shop.recheck()
    assert output == "succeeded" if failure == DROP_CONNECTION else f"fulfil {ORDER}" in output
    assert shop.files("paid") == {ORDER}
