"""Customers who lose an answer look before they click again, and every click is in the history, also one given up."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from urllib.parse import parse_qs

import pytest

from chaos.history import CustomerClicked, History, read_history
from chaos.load import customers
from chaos.load.checkout_pages import PageKind
from chaos.load.customers import Customer
from chaos.load.http_client import HttpAddress
from chaos.load.instruments import card
from chaos.load.plans import ClickStyle, Payment, Visit
from chaos.load.recorder import Recorder
from tests.event_loops import run_async

FORM = (
    '<form><input type="hidden" name="csrf_token" value="t&amp;1"><input type="radio" name="method"></form>'
)
DECLINED = f"<p>Your payment did not go through</p>{FORM}"
CODE = FORM + '<input type="hidden" name="attempt" value="a-1">'
PAID = '<dl class="slip">'
CONFIRMING = '<div data-state-url="/pay/u/state">'


class _Checkout:
    """Serves `page`, and calls `submit` for each form. A submit that returns False closes the connection."""

    def __init__(self, submit: "Callable[[_Checkout], Awaitable[bool]]", page: str = FORM) -> None:
        self.page = page
        self.forms: list[dict[str, list[str]]] = []
        self.cookies: list[str] = []
        self._submit = submit

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                if head.startswith("GET"):
                    body = self.page.encode()
                    writer.write(
                        b"HTTP/1.1 200 OK\r\nSet-Cookie: s=1; HttpOnly\r\nContent-Length: %d\r\n\r\n"
                        % len(body)
                        + body
                    )
                    continue
                length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
                self.forms.append(parse_qs((await reader.readexactly(length)).decode()))
                self.cookies.append(head.partition("Cookie: ")[2].partition("\r\n")[0])
                if not await self._submit(self):
                    return
                writer.write(
                    b"HTTP/1.1 303 See Other\r\nLocation: /pay/u?lang=en\r\nContent-Length: 0\r\n\r\n"
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


def _visit(
    checkout: _Checkout, path: Path, visit: Visit, give_up_s: float | None = None
) -> tuple[PageKind | None, list[CustomerClicked]]:
    """Let a customer visit this checkout; the load gives up after `give_up_s`. Return the last page and the clicks."""
    history = History(path)

    async def main() -> PageKind | None:
        server = await asyncio.start_server(checkout.serve, "127.0.0.1", 0)
        address = HttpAddress("127.0.0.1", server.sockets[0].getsockname()[1], "")
        customer = Customer(address, "u", Recorder(history), Random(1))
        try:
            async with asyncio.timeout(give_up_s):
                return await customer.visit(visit)
        except TimeoutError:
            return None
        finally:
            server.close()
            await asyncio.sleep(0)

    try:
        page = run_async(main())
    finally:
        history.close()
    return page, [record for record in read_history(path) if isinstance(record, CustomerClicked)]


async def _pay(checkout: _Checkout) -> bool:
    checkout.page = PAID
    return True


def test_form_is_sent_with_its_token_and_cookie(tmp_path: Path) -> None:
    checkout = _Checkout(_pay)
    page, clicks = _visit(checkout, tmp_path / "history", Visit((Payment(card("pays")),)))
    assert page is PageKind.PAID
    (form,) = checkout.forms
    assert form["csrf_token"] == ["t&1"]
    assert form["card_number"] == ["4242424242424242"]
    assert checkout.cookies == ["s=1"]
    (click,) = clicks
    assert (click.click, click.method, click.script) == ("pay", "card", "pays")
    assert (click.http_status, click.page) == (303, "paid")
    assert click.began_at <= click.at


def test_customer_who_lost_the_answer_and_is_paid_does_not_click_again(tmp_path: Path) -> None:
    async def pay_without_answer(checkout: _Checkout) -> bool:
        checkout.page = PAID
        return False

    checkout = _Checkout(pay_without_answer)
    page, clicks = _visit(checkout, tmp_path / "history", Visit((Payment(card("pays")),)))
    assert page is PageKind.PAID
    assert [(click.http_status, click.page) for click in clicks] == [(None, None)]


def test_customer_who_lost_the_answer_and_sees_the_form_clicks_again(tmp_path: Path) -> None:
    async def lose_the_first(checkout: _Checkout) -> bool:
        if len(checkout.forms) > 1:
            checkout.page = PAID
        return len(checkout.forms) > 1

    page, clicks = _visit(_Checkout(lose_the_first), tmp_path / "history", Visit((Payment(card("pays")),)))
    assert page is PageKind.PAID
    assert [click.page for click in clicks] == [None, "paid"]


def test_customer_who_lost_the_answer_and_is_declined_uses_the_next_payment(tmp_path: Path) -> None:
    async def decline_then_pay(checkout: _Checkout) -> bool:
        is_first = len(checkout.forms) == 1
        checkout.page = DECLINED if is_first else PAID
        return not is_first

    visit = Visit((Payment(card("declines")), Payment(card("pays"))))
    page, clicks = _visit(_Checkout(decline_then_pay), tmp_path / "history", visit)
    assert page is PageKind.PAID
    assert [(click.script, click.page) for click in clicks] == [("declines", None), ("pays", "paid")]


def test_click_that_runs_when_the_load_ends_is_recorded_without_an_answer(tmp_path: Path) -> None:
    async def hang(_: _Checkout) -> bool:
        await asyncio.sleep(3600)
        return False

    page, clicks = _visit(
        _Checkout(hang), tmp_path / "history", Visit((Payment(card("pays")),)), give_up_s=0.5
    )
    assert page is None
    assert [(click.http_status, click.page) for click in clicks] == [(None, None)]


def test_double_click_sends_the_same_form_twice_at_once(tmp_path: Path) -> None:
    both = asyncio.Event()

    async def wait_for_both(checkout: _Checkout) -> bool:
        if len(checkout.forms) == 2:
            checkout.page = PAID
            both.set()
        await asyncio.wait_for(both.wait(), 5)
        return True

    checkout = _Checkout(wait_for_both)
    visit = Visit((Payment(card("pays"), ClickStyle.DOUBLE),))
    page, clicks = _visit(checkout, tmp_path / "history", visit)
    assert page is PageKind.PAID
    assert checkout.forms[0] == checkout.forms[1]
    assert [click.page for click in clicks] == ["paid", "paid"]


def test_codes_are_entered_until_the_page_changes(tmp_path: Path) -> None:
    async def ask_for_codes(checkout: _Checkout) -> bool:
        is_right = checkout.forms[-1].get("code") == ["111111"]
        checkout.page = PAID if is_right else CODE
        return True

    used = card("asks_for_code")
    checkout = _Checkout(ask_for_codes)
    visit = Visit((Payment(used, codes=(used.wrong_code, used.right_code, used.right_code)),))
    page, clicks = _visit(checkout, tmp_path / "history", visit)
    assert page is PageKind.PAID
    assert [(click.click, click.page) for click in clicks] == [
        ("pay", "code"),
        ("code", "code"),
        ("code", "paid"),
    ]
    assert checkout.forms[-1]["attempt"] == ["a-1"]


def test_waiting_page_is_followed_until_the_state_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(customers, "_POLL_S", 0.05)

    async def confirm_later(checkout: _Checkout) -> bool:
        checkout.page = CONFIRMING
        asyncio.get_running_loop().call_later(0.3, setattr, checkout, "page", '{"state":"x"} ' + PAID)
        return True

    visit = Visit((Payment(card("pays_in_silence")),))
    monkeypatch.setattr(customers, "_CONFIRMING_S", 0.5)
    page, clicks = _visit(_Checkout(confirm_later), tmp_path / "history", visit)
    assert page is PageKind.PAID
    assert [click.page for click in clicks] == ["confirming"]
