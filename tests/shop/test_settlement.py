"""Orders when Mizan is unavailable, or reports things late, twice, out of order, or with another amount."""

from datetime import UTC, datetime

import pytest

from examples.shop.database import Database
from examples.shop.orders import fulfil_order, latest_orders
from examples.shop.payments import PaymentStatus, next_check, next_late_check
from tests.shop.conftest import ShopInTest

_HOUR = 3600.0


def test_create_without_a_response_is_repeated_with_the_same_reference(shop: ShopInTest) -> None:
    """Also by a new process after a kill. There is one intent. # §4.1"""
    shop.mizan.responds_to_creates = False
    page = shop.buy()
    assert shop.state(page) == "starting"
    shop.start()
    shop.mizan.responds_to_creates = True
    shop.make_due()
    shop.work()
    assert shop.state(page) == "unpaid"
    assert len(shop.mizan.creates) == 2
    assert len(set(shop.mizan.creates)) == len(shop.mizan.intents) == 1


def test_webhook_before_the_response_to_the_create_fulfils_the_order(shop: ShopInTest) -> None:
    """The merchant_reference of the intent identifies the order."""
    shop.mizan.responds_to_creates = False
    page = shop.buy()
    shop.mizan.only_intent()["status"] = "succeeded"
    shop.send_event()
    shop.work()
    assert shop.state(page) == "fulfilled"
    assert "webhook" in shop.steps(page)


def test_return_of_a_paid_customer_fulfils_without_a_webhook(shop: ShopInTest) -> None:
    """A visit of return_url proves nothing: only the status at Mizan counts. # §6.5, 5"""
    page = shop.buy()
    intent = shop.mizan.only_intent()
    assert intent["return_url"] == f"http://127.0.0.1:8008{page}/return"
    assert shop.browser.get(f"{page}/return").location == page
    assert shop.state(page) == "unpaid"
    intent["status"] = "succeeded"
    shop.browser.get(f"{page}/return")
    assert shop.state(page) == "fulfilled"


def test_check_after_expiry_fulfils_without_a_webhook_or_a_return(shop: ShopInTest) -> None:
    page = shop.buy()
    shop.work()
    ((ask_at,),) = shop.rows("select ask_at from payments")
    assert 0 < ask_at - datetime(2030, 1, 1, tzinfo=UTC).timestamp() < 60
    shop.mizan.only_intent()["status"] = "succeeded"
    shop.make_due()
    shop.work()
    assert shop.state(page) == "fulfilled"


def test_work_waits_with_growing_delays_while_mizan_is_unavailable(shop: ShopInTest) -> None:
    page = shop.buy()
    shop.mizan.only_intent()["status"] = "succeeded"
    shop.send_event()
    shop.mizan.is_unavailable = True
    for _ in range(3):
        shop.make_due()
        shop.work()
    ((tried,),) = shop.rows("select tried from inbox")
    assert (shop.state(page), tried) == ("unpaid", 3)
    shop.mizan.is_unavailable = False
    shop.make_due()
    shop.work()
    assert shop.state(page) == "fulfilled"


def test_refused_create_is_not_repeated(shop: ShopInTest) -> None:
    shop.mizan.refuses_creates = True
    page = shop.buy()
    assert shop.state(page) == "refused"
    assert shop.steps(page)[-1] == "refused"
    assert shop.rows("select * from payments where ask_at is not null") == []
    requests = len(shop.mizan.requested_paths)
    shop.work()
    assert len(shop.mizan.requested_paths) == requests == 1


def test_new_credentials_in_the_file_are_used_without_a_restart(shop: ShopInTest) -> None:
    """Until then, or without a usable file, Mizan is unavailable for the shop, and the worker tries again."""
    shop.mizan.access_token = "at_second-one"
    page = shop.buy()
    assert (shop.state(page), shop.steps(page)[-1]) == ("starting", "mizan_away")
    path = shop.settings.credentials_file
    old = path.read_text()
    for content in ("", old.replace("at_of-the-shop", ""), old.replace("at_of-the-shop", "at_\\n")):
        path.write_text(content)
        shop.make_due()
        shop.work()
        assert shop.browser.get("/readyz").status_code == 503
    assert len(shop.mizan.requested_paths) == 1
    path.write_text(old.replace("at_of-the-shop", "at_second-one"))
    shop.make_due()
    shop.work()
    assert shop.state(page) == "unpaid"


def test_payment_with_another_amount_or_currency_is_not_fulfilled(shop: ShopInTest) -> None:
    """Whether the create or a later check shows it. # §6.5, 4"""
    shop.mizan.next_amount = 1_000
    early = shop.buy()
    assert shop.state(early) == "doubtful"
    shop.mizan.only_intent()["status"] = "succeeded"
    shop.send_event()
    shop.work()
    assert shop.state(early) == "doubtful"

    shop.mizan.intents.clear()
    shop.mizan.next_amount = None
    late = shop.buy()
    shop.mizan.only_intent().update(status="succeeded", currency="USD")
    shop.send_event()
    shop.work()
    assert shop.state(late) == "doubtful"
    assert "fulfilled" not in shop.steps(early) + shop.steps(late)


def test_expired_order_is_paid_again_and_a_late_payment_is_noticed(shop: ShopInTest) -> None:
    """With a new reference. A late payment of the first intent fulfils nothing again. # §3, §4.1 rule 6"""
    page = shop.buy()
    first = shop.mizan.only_intent()
    first["status"] = "canceled"
    shop.send_event("payment_intent.canceled")
    shop.work()
    assert shop.state(page) == "expired"
    with Database(shop.settings.database).reading() as connection:
        (order,) = latest_orders(connection)
    assert shop.shop.worker.checkout.start_new_payment(order) == shop.shop.worker.checkout.start_new_payment(
        order
    )
    for _ in range(2):
        assert shop.form("/", f"{page}/pay").status_code == 303
    assert len(set(shop.mizan.creates)) == 2
    (second,) = [one for one in shop.mizan.intents.values() if one is not first]
    for intent in (second, first):
        intent["status"] = "succeeded"
        shop.send_event(uuid=intent["uuid"])
        shop.work()
    assert shop.steps(page).count("fulfilled") == shop.steps(page).count("paid_twice") == 1


def test_other_checks_do_not_postpone_the_check_of_an_expired_payment(shop: ShopInTest) -> None:
    """Webhooks, returns and failed checks do not move the checks for late payments. # §3"""
    page = shop.buy()
    shop.mizan.only_intent()["status"] = "canceled"
    shop.make_due()
    shop.work()
    shop.send_event("payment_intent.canceled")
    shop.work()
    shop.browser.get(f"{page}/return")
    shop.mizan.is_unavailable = True
    shop.browser.get(f"{page}/return")
    ((ask_at, canceled_at),) = shop.rows("select ask_at, canceled_at from payments")
    assert ask_at < canceled_at + 60
    shop.mizan.is_unavailable = False
    shop.make_due()
    shop.work()
    assert shop.rows("select 1 from payments where ask_at = canceled_at + ?", _HOUR)
    shop.mizan.only_intent()["status"] = "succeeded"
    shop.make_due()
    shop.work()
    assert shop.state(page) == "fulfilled"


def test_no_new_payment_while_the_status_of_the_first_is_unknown(shop: ShopInTest) -> None:
    """Without a response, and if Mizan does not find the intent: it may have been paid."""
    page = shop.buy()
    first = shop.mizan.only_intent()
    first["status"] = "canceled"
    shop.browser.get(f"{page}/return")
    first["status"] = "succeeded"
    shop.mizan.is_unavailable = True
    assert shop.form(page, f"{page}/pay").location == page
    assert "cannot be reached" in shop.browser.get(f"{page}?lang=en").text
    assert "cannot be reached" not in shop.browser.get(page).text
    shop.mizan.is_unavailable = False
    shop.mizan.intents.clear()
    assert shop.form(page, f"{page}/pay").location == page
    assert len(shop.rows("select * from payments")) == 1
    shop.mizan.intents[first["uuid"]] = first
    assert shop.form(page, f"{page}/pay").location == page
    assert shop.state(page) == "fulfilled"
    assert len(shop.rows("select * from payments")) == 1


@pytest.mark.parametrize("way", ["return", "pay"])
def test_customer_triggers_a_check_of_every_payment_of_the_order(shop: ShopInTest, way: str) -> None:
    """A late success of the first payment is found after a second was started, so nobody pays again."""
    page = shop.buy()
    first = shop.mizan.only_intent()
    first["status"] = "canceled"
    shop.browser.get(f"{page}/return")
    assert shop.form(page, f"{page}/pay").location.startswith("https://pay.example/")
    first["status"] = "succeeded"
    if way == "pay":
        assert shop.form(page, f"{page}/pay").location == page
    else:
        shop.browser.get(f"{page}/return")
    assert shop.state(page) == "fulfilled"


def test_no_new_payment_for_an_order_that_was_fulfilled_meanwhile(shop: ShopInTest) -> None:
    page = shop.buy()
    shop.mizan.only_intent()["status"] = "canceled"
    shop.browser.get(f"{page}/return")
    with Database(shop.settings.database).reading() as connection:
        (order,) = latest_orders(connection)
    with Database(shop.settings.database).transaction() as connection:
        fulfil_order(connection, order.id, "order-1-another", 1.0)
    assert [shop.shop.worker.checkout.start_new_payment(order)] == shop.mizan.creates


def test_outdated_status_changes_nothing(shop: ShopInTest) -> None:
    """Only the status at Mizan counts, not the event: "canceled" may arrive after "succeeded". # §6.2"""
    page = shop.buy()
    shop.mizan.only_intent()["status"] = "succeeded"
    for event in ("payment_intent.canceled", "payment_intent.succeeded", "payment_intent.canceled"):
        shop.send_event(event)
        shop.work()
    # A delayed response to an earlier request.
    shop.mizan.only_intent()["status"] = "canceled"
    shop.send_event()
    shop.work()
    assert [row["status"] for row in shop.rows("select status from payments")] == ["succeeded"]
    assert shop.state(page) == "fulfilled"
    assert "expired" not in shop.steps(page)


def test_double_click_places_one_order_and_another_quantity_a_second(shop: ShopInTest) -> None:
    order_id = "A" * 22
    for coffees in ("1", "1", "2"):
        shop.form("/", "/orders", order=order_id, coffee=coffees)
    assert [row["amount"] for row in shop.rows("select amount from orders order by number")] == [4_000, 8_000]


def test_invalid_quantities_order_nothing(shop: ShopInTest) -> None:
    for quantity in ("-1", "0", "1e9", "", "²", "9" * 5000, "<script>"):
        assert shop.form("/", "/orders", coffee=quantity).status_code == 422
    assert shop.form("/", "/orders", coffee="٣").status_code == 303
    ((amount,),) = shop.rows("select amount from orders")
    assert amount == 12_000


def test_forms_without_a_token_and_admin_pages_on_other_hosts_are_refused(shop: ShopInTest) -> None:
    assert shop.browser.post("/orders", data={"coffee": "1"}).status_code == 400
    assert shop.browser.post("/orders?lang=en", data={"coffee": "1"}).status_code == 400
    for path in ("/admin", "/orders"):
        assert shop.browser.get(path, headers={"Host": "evil.example"}).status_code == 404
        assert shop.browser.get(path).status_code == 200


def test_times_of_the_next_check() -> None:
    """Not before expiry, then at growing intervals; three times after a cancellation, for late payments."""
    now = 1_000_000.0
    unpaid = PaymentStatus.REQUIRES_PAYMENT_METHOD
    assert next_check(unpaid, now + 600, 0, now) == now + 605
    delays = [(next_check(unpaid, now - 1, asked, now) or 0) - now for asked in range(9)]
    assert delays == sorted(delays)
    assert (delays[0], delays[-1]) == (30, _HOUR)
    assert next_check(PaymentStatus.SUCCEEDED, now - 1, 0, now) is None
    late = [next_late_check(now, now + hours * _HOUR) for hours in (0, 1, 23, 24, 167, 168)]
    assert late == [now + _HOUR, *[now + 24 * _HOUR] * 2, *[now + 168 * _HOUR] * 2, None]
