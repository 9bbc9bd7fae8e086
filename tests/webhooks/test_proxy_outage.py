"""An outage of the egress proxy, through the real topics: tries are retried on schedule, and nothing is lost."""

from dataclasses import replace

from tests.waiting import eventually
from tests.webhooks.conftest import TWO_RETRIES, Webhooks
from tests.webhooks.connect_proxy import ConnectProxy
from tests.webhooks.merchants import Merchant, ids_in
from tests.webhooks.receivers import Peer, Receiver


def test_deliveries_survive_an_outage_of_the_proxy(
    webhooks: Webhooks, merchant: Merchant, receiver: Receiver
) -> None:
    """§6.6: it refuses the first try and resets the second. The record says that it was the proxy."""
    with ConnectProxy({f"127.0.0.1:{receiver.port}": receiver.port}) as proxy:
        outage = [lambda peer: peer.say(b"HTTP/1.1 407 Who?\r\n\r\n"), Peer.reset]

        def fail_and_recover(peer: Peer) -> None:
            fail = outage.pop(0)
            if not outage:
                proxy.answer = None
            fail(peer)

        proxy.answer = fail_and_recover
        settings = replace(webhooks.settings.webhooks, proxy=proxy.settings())
        proxied = Webhooks(replace(webhooks.settings, webhooks=settings))
        delivery_id = merchant.create_event()
        with proxied.running_with_relay(*TWO_RETRIES):
            eventually(lambda: merchant.status(delivery_id) == "succeeded")
    outcomes = [(one.step, one.failure, one.status_code) for one in merchant.tries(delivery_id)]
    assert outcomes == [(1, "proxy_refused", None), (2, "proxy_unreachable", None), (3, None, 200)]
    assert ids_in(receiver) == [delivery_id]
    assert set(proxy.targets) == {f"127.0.0.1:{receiver.port}"}
