"""The shops of docs/merchants.md do what §6.5 obliges receivers to, whoever calls and whatever breaks."""

import json
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from shared.domain.deliveries.signing import build_body
from tests.merchants.conftest import NEW, OLD
from tests.merchants.shops import Shop, signed
from tests.merchants.stand_in_api import HANG_UP, StandInApi
from tests.waiting import eventually

pytestmark = pytest.mark.stack

ORDER, OTHER_ORDER = "order-1042", "order-1043"
AMOUNT = 25_500


def test_forged_requests_get_401_and_change_nothing(shop: Shop, api: StandInApi) -> None:
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


def test_signed_nonsense_is_refused_and_the_shop_goes_on(shop: Shop, api: StandInApi) -> None:
    large, no_json, no_event = b'{"pad":"' + b"x" * 1_000_000 + b'"}', b"\xff{", b"[1]"
    upward = build_body(
        "../../paid/order-1042", "payment_intent.succeeded", api.intent(ORDER, AMOUNT, "canceled")
    )
    assert shop.receive(large, signed(large, NEW)) == 413
    assert shop.receive(upward, signed(upward, NEW)) == 400
    assert shop.receive(no_json, signed(no_json, NEW)) >= 400
    assert shop.receive(no_event, signed(no_event, NEW)) >= 400
    assert shop.hear(api.intent(ORDER, AMOUNT, "succeeded"), NEW) == 200
    eventually(lambda: shop.files("paid") == {ORDER})


def test_the_new_and_the_old_secret_are_accepted_over_raw_bytes(shop: Shop, api: StandInApi) -> None:
    """Also where the bytes are not those that a JSON library would write, and there is a field that nobody knows."""
    event = {"id": str(uuid4()), "data": {"uuid": api.intent(ORDER, AMOUNT, "succeeded")}, "é/": 1.0}
    body = json.dumps(event, indent=3).encode()
    assert shop.receive(body, signed(body, NEW)) == 200
    assert shop.hear(api.intent(OTHER_ORDER, 12_000, "succeeded"), OLD) == 200
    eventually(lambda: shop.files("paid") == {ORDER, OTHER_ORDER})


def test_a_delivery_that_comes_often_is_worked_off_once(shop: Shop, api: StandInApi) -> None:
    intent, delivery = api.intent(ORDER, AMOUNT, "succeeded"), str(uuid4())
    with ThreadPoolExecutor(6) as callers:
        answers = list(callers.map(lambda _: shop.hear(intent, NEW, id=delivery), range(6)))
    assert answers == [200] * 6
    eventually(lambda: shop.settled() and shop.files("done") == {f"{delivery}.{intent}"})
    retrieved = len(api.retrieved)
    assert shop.hear(intent, NEW, id=delivery) == 200  # a resend, much later
    assert shop.hear(intent, NEW) == 200  # another event of the same order
    eventually(lambda: shop.settled() and len(shop.files("done")) == 2)
    assert shop.log.count(f"fulfil {ORDER}") == 1
    assert len(api.retrieved) == retrieved + 1


def test_it_answers_first_and_works_afterwards(shop: Shop, api: StandInApi) -> None:
    """The API keeps silent, and the webhook is answered nevertheless."""
    intent = api.intent(ORDER, AMOUNT, "succeeded")
    api.speaks.clear()
    assert shop.hear(intent, NEW) == 200
    assert shop.files("paid") == set()
    api.speaks.set()
    eventually(lambda: shop.files("paid") == {ORDER})


def test_what_could_not_be_worked_off_is_kept_for_the_next_look(shop: Shop, api: StandInApi) -> None:
    """The API refuses; the event stays, and another one is not held up by it."""
    intent = api.intent(ORDER, AMOUNT, "succeeded")
    api.troubles.append(403)
    assert shop.hear(intent, NEW) == 200
    eventually(lambda: "stays in the inbox" in shop.log)
    assert (len(shop.files("inbox")), shop.files("paid")) == (1, set())
    assert f"fulfil {ORDER}" in shop.recheck()
    assert (shop.files("inbox"), shop.files("paid")) == (set(), {ORDER})


def test_a_wrong_amount_is_not_fulfilled(shop: Shop, api: StandInApi) -> None:
    """Neither when it was paid, nor does a customer get sent to pay it (§4.1 rule 4)."""
    intent = api.intent(ORDER, AMOUNT - 1, "succeeded")
    assert shop.hear(intent, NEW) == 200
    eventually(lambda: f"look into {ORDER}" in shop.log)
    assert shop.pay(ORDER).status_code == 500
    assert (shop.files("paid"), shop.files("intents")) == (set(), set())


def test_the_status_decides_not_the_event(shop: Shop, api: StandInApi) -> None:
    """Events of a canceled intent that is paid late, out of order; and a test delivery's uuid, which is nobody's."""
    intent = api.intent(ORDER, AMOUNT, "canceled")
    assert shop.hear(intent, NEW, "payment_intent.succeeded") == 200
    assert shop.hear(str(uuid4()), NEW) == 200
    eventually(lambda: shop.settled() and len(shop.files("done")) == 2)
    assert shop.files("paid") == set()
    api.intents[intent]["status"] = "succeeded"
    assert shop.hear(intent, NEW, "payment_intent.canceled") == 200
    eventually(lambda: shop.files("paid") == {ORDER})


@pytest.mark.parametrize("trouble", [HANG_UP, 503])
def test_a_create_without_an_answer_is_sent_again(shop: Shop, api: StandInApi, trouble: int) -> None:
    """With the same reference; and without any webhook the customer's return settles the order, or looking again."""
    api.troubles.append(trouble)
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
    told = shop.page(ORDER) if trouble == HANG_UP else shop.recheck()
    assert told == "succeeded" if trouble == HANG_UP else f"fulfil {ORDER}" in told
    assert shop.files("paid") == {ORDER}
