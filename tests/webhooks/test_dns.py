"""DNS look-ups of the HTTP client: once per name, in their own threads, with limits per application."""

from threading import Event, Thread

import pytest

from services.webhooks.http.client import WebhookRequest
from services.webhooks.http.dns import resolve_host
from shared.domain.deliveries.try_results import TryFailure
from tests.waiting import eventually
from tests.webhooks.receivers import Receiver, Reply, collect, open_client, send_one


def never(host: str, _port: int) -> list[str]:
    raise AssertionError(f"{host} was looked up")


def test_host_name_is_looked_up_once_for_all_waiting_requests(receiver: Receiver) -> None:
    looked_up: list[str] = []

    def counting(host: str, port: int) -> list[str]:
        looked_up.append(f"{host}:{port}")
        return ["127.0.0.1"]

    with open_client(resolve_host=counting) as client:
        url = f"http://shop.example:{receiver.port}"
        for number in range(100):
            client.start(number, WebhookRequest(f"{url}/{number % 3}", b"{}", "0"))
        assert {answer.status_code for _, answer in collect(client, 100)} == {200}
        assert send_one(client, f"http://SHOP.example:{receiver.port}/").status_code == 200
    assert looked_up == [f"shop.example:{receiver.port}"]
    assert {request.headers["host"].lower() for request in receiver.requests} == set(looked_up)


def test_host_name_is_looked_up_again_after_a_while(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.webhooks.http.dns._ADDRESSES_VALID_S", 0.0)
    addresses = iter([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"]])
    receiver.answer = Reply(closes=True)
    with open_client(resolve_host=lambda _host, _port: next(addresses)) as client:
        url = f"http://shop.example:{receiver.port}/"
        outcomes = [send_one(client, url) for _ in range(3)]
    assert [answer.failure or answer.status_code for answer in outcomes] == [200, TryFailure.REFUSED, 200]


def test_second_address_is_tried_if_the_first_refuses(receiver: Receiver) -> None:
    with open_client(resolve_host=lambda _host, _port: ["127.0.0.2", "127.0.0.1"]) as client:
        assert send_one(client, f"http://shop.example:{receiver.port}/").status_code == 200


def test_a_hanging_lookup_delays_no_other_request(receiver: Receiver) -> None:
    """libcurl's own resolver would block at the tenth request. The look-up counts towards the time limit."""
    end = Event()

    def resolve_or_hang(host: str, _port: int) -> list[str]:
        if host.startswith("hangs"):
            end.wait(20)
        return ["127.0.0.1"]

    with open_client(limit_s=3, resolve_host=resolve_or_hang) as client:
        for number in range(40):
            client.start(
                "hangs",
                WebhookRequest(
                    f"http://hangs{number % 20}.example:{receiver.port}/", b"{}", "0", f"{number % 20}"
                ),
            )
        client.start("good", WebhookRequest(f"http://shop.example:{receiver.port}/", b"{}", "0"))
        ((tag, good),) = collect(client, 1)
        assert (tag, good.status_code) == ("good", 200)
        answers = [answer for _, answer in collect(client, 40)]
        end.set()
    assert {answer.failure for answer in answers} == {TryFailure.TIMEOUT}
    assert all(2990 <= answer.duration_ms < 15_000 for answer in answers)


def test_a_lookup_counts_towards_the_time_limit(receiver: Receiver) -> None:
    receiver.answer = Reply(hangs=True)

    def slow(_host: str, _port: int) -> list[str]:
        Event().wait(1.5)
        return ["127.0.0.1"]

    with open_client(limit_s=2, resolve_host=slow) as client:
        answer = send_one(client, f"http://shop.example:{receiver.port}/")
        assert answer.failure == TryFailure.TIMEOUT
        assert 1990 <= answer.duration_ms < 3400  # 3,500 if only the request had the limit
        receiver.answer = Reply(delay_s=0.6)
        again = send_one(client, f"http://shop.example:{receiver.port}/")
        assert again.status_code == 200  # the next request has the whole limit


def test_system_resolver_finds_localhost() -> None:
    assert "127.0.0.1" in resolve_host("localhost", 80)


def test_addresses_found_for_abandoned_requests_are_not_used_later(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """curl had not read them yet when the requests were abandoned, and must not read them later."""
    addresses_in_turn = iter([["127.0.0.2"], ["127.0.0.1"]])
    receiver.answer = Reply(closes=True)
    url = f"http://shop.example:{receiver.port}/"
    with open_client(resolve_host=lambda _host, _port: next(addresses_in_turn)) as client:
        monkeypatch.setattr("services.webhooks.http.dns._ADDRESSES_VALID_S", 0.0)
        for tag in range(2):
            client.start(tag, WebhookRequest(url, b"{}", "0"))
        eventually(lambda: client._resolver._ended)
        client._finish_lookups()
        assert client.abandon(lambda _: True) == [0, 1]
        monkeypatch.undo()
        assert send_one(client, url).status_code == 200
        for tag in range(2):
            client.start(tag, WebhookRequest(receiver.url, b"{}", "0"))
        assert {answer.status_code for _, answer in collect(client, 2)} == {200}
        assert send_one(client, url).status_code == 200


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f.0.0.1", "[::ffff:127.0.0.1]"]
)
def test_ip_address_is_not_looked_up_in_any_spelling(receiver: Receiver, host: str) -> None:
    with open_client(resolve_host=never) as client:
        assert send_one(client, f"http://{host}:{receiver.port}/").status_code == 200


def test_lookup_uses_the_default_port_of_the_scheme() -> None:
    looked_up: list[tuple[str, int]] = []

    def nobody(host: str, port: int) -> list[str]:
        looked_up.append((host, port))
        return []

    with open_client(resolve_host=nobody) as client:
        for url in (
            "https://Shop.Example",
            "http://shop.example/x",
            "https://shop.example:/",
            "https://shop.example./",
        ):
            assert send_one(client, url).failure == TryFailure.DNS
    assert looked_up == [
        ("shop.example", 443),
        ("shop.example", 80),
        ("shop.example", 443),
        ("shop.example.", 443),
    ]


def test_lookup_fails_without_a_free_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with open_client(resolve_host=never) as client:
        monkeypatch.setattr(Thread, "start", no_thread)
        assert send_one(client, "http://shop.example/").failure == TryFailure.DNS


def test_many_hanging_lookups_of_one_application_do_not_delay_another(receiver: Receiver) -> None:
    released = Event()

    def resolve_slowly(host: str, _port: int) -> list[str]:
        if host.startswith("dead"):
            released.wait(10)
            return []
        return ["127.0.0.1"]

    with open_client(resolve_host=resolve_slowly, limit_s=2.0) as client:
        for number in range(200):
            client.start(number, WebhookRequest(f"http://dead{number}.example/", b"{}", "0", "one"))
        client.start("good", WebhookRequest(f"http://good.example:{receiver.port}/", b"{}", "0", "another"))
        ((tag, answer),) = collect(client, 1)
        released.set()
    assert (tag, answer.status_code) == ("good", 200)


def test_more_names_than_threads_are_looked_up_one_after_another(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.webhooks.http.dns._MAX_LOOKUPS", 2)
    with open_client(resolve_host=lambda _host, _port: ["127.0.0.1"]) as client:
        for number in range(20):
            client.start(number, WebhookRequest(f"http://shop{number}.example:{receiver.port}/", b"{}", "0"))
        assert {answer.status_code for _, answer in collect(client, 20)} == {200}
