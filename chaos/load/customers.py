"""Customers at the checkout, over HTTP as a browser does: pages, cookies, forms, redirects and the waiting page."""

import asyncio
import json
from random import Random
from time import monotonic, time
from urllib.parse import urlencode, urlsplit

from chaos.history import CustomerClicked
from chaos.load.checkout_pages import PageKind, hidden_fields, page_kind
from chaos.load.http_client import HttpAddress, HttpConnection, HttpResponse, NoResponseError
from chaos.load.plans import ClickStyle, Payment, Visit
from chaos.load.recorder import Recorder

_PAGE_TIMEOUT_S = 10.0
_CLICK_TIMEOUT_S = 20.0
"""The checkout waits up to 10 s for a provider that does not answer, and then shows the page that waits."""
_TRIES = 4
_POLL_S = 2.0
_CONFIRMING_S = 45.0
_REDIRECTS = (302, 303)
_FINAL = (PageKind.PAID, PageKind.EXPIRED)
_UNKNOWN = (None, PageKind.ERROR)
_CHANGE = "&change=1"


class Customer:
    """One customer of one intent. Tabs share the cookies, and have connections and pages of their own."""

    def __init__(self, checkout: HttpAddress, uuid: str, recorder: Recorder, random: Random) -> None:
        self._checkout = checkout
        self._uuid = uuid
        self._recorder = recorder
        self._random = random
        self._cookies: dict[str, str] = {}

    async def visit(self, visit: Visit) -> PageKind | None:
        """Do what the customer plans to do. Return the last page, or None if there was none."""
        await asyncio.sleep(visit.thinks_s)
        if visit.has_two_tabs:
            first = self._tab()
            await first.open()  # both tabs use the cookie that it sets
            pages = await asyncio.gather(
                first.pay_all(visit.payments[:1]), self._pay_in_second_tab(visit.payments[1:])
            )
            return next((page for page in pages if page in _FINAL), pages[-1])
        return await self._tab().pay_all(visit.payments)

    async def _pay_in_second_tab(self, payments: tuple[Payment, ...]) -> PageKind | None:
        await asyncio.sleep(self._random.uniform(0, 1))
        return await self._tab().pay_all(payments)

    def _tab(self) -> "_Tab":
        return _Tab(self._checkout, self._uuid, self._recorder, self._random, self._cookies)


class _Tab:
    def __init__(
        self,
        checkout: HttpAddress,
        uuid: str,
        recorder: Recorder,
        random: Random,
        cookies: dict[str, str],
    ) -> None:
        self._connection = HttpConnection(checkout)
        self._second_connection = HttpConnection(checkout)
        self._uuid = uuid
        self._path = f"/pay/{uuid}"
        self._recorder = recorder
        self._random = random
        self._cookies = cookies
        self._page: PageKind | None = None
        self._hidden: dict[str, str] = {}

    async def pay_all(self, payments: tuple[Payment, ...]) -> PageKind | None:
        """Make the payments one after the other until one succeeds. Return the last page."""
        try:
            for payment in payments:
                await self._pay(payment)
                if self._page in _FINAL:
                    break
                await asyncio.sleep(self._random.uniform(0.2, 2))
            return self._page
        finally:
            self._connection.close()
            self._second_connection.close()

    async def open(self, query: str = "") -> PageKind | None:
        """Open the page of the intent, again if there is none or an error. Return what it shows."""
        self._page = None
        for number in range(_TRIES):
            if number:
                await asyncio.sleep(self._random.uniform(0.5, 3))
            try:
                page = await self._read_page(self._connection, f"{self._path}?lang=en{query}")
            except NoResponseError:
                continue
            if page is not PageKind.ERROR:
                break
        return self._page

    async def _pay(self, payment: Payment) -> None:
        """Submit the payment form, and what follows it. If the answer is lost, look first and then try again."""
        style = payment.style
        for number in range(_TRIES):
            # A customer who was asked for a code chooses another method instead.
            await self.open(_CHANGE if self._page is PageKind.CODE else "")
            if self._page is PageKind.CONFIRMING:
                await self._wait_until_confirmed()
            is_declined_before = self._page is PageKind.DECLINED and number == 0
            if self._page is not PageKind.FORM and not is_declined_before:
                break
            await self._click("pay", payment, style, "", payment.instrument.form)
            if self._page not in _UNKNOWN:
                break
            style = ClickStyle.ONCE
            await asyncio.sleep(self._random.uniform(0.5, 3))
        if self._page is PageKind.CODE:
            await self._enter_codes(payment)
        if self._page is PageKind.CONFIRMING:
            await self._wait_until_confirmed()

    async def _enter_codes(self, payment: Payment) -> None:
        style = payment.code_style
        for code in payment.codes:
            await asyncio.sleep(self._random.uniform(0.1, 1.5))
            await self._click("code", payment, style, "/code", {"code": code})
            style = ClickStyle.ONCE
            if self._page in _UNKNOWN:
                await self.open()
            if self._page is PageKind.CONFIRMING:
                await self._wait_until_confirmed()
            if self._page is not PageKind.CODE:
                return

    async def _click(
        self, click: str, payment: Payment, style: ClickStyle, path: str, fields: dict[str, str]
    ) -> None:
        """Submit a form of the page that is open. Afterwards `_page` is what the customer sees, None if nothing."""
        # The form belongs to the page that was open before any answer: both clicks send the same.
        body = urlencode({**self._hidden, **fields}).encode()
        self._page = None
        if style is ClickStyle.DOUBLE:
            await asyncio.gather(
                self._submit(self._connection, click, payment, path, body),
                self._submit(self._second_connection, click, payment, path, body),
            )
            await self.open()
        elif style is ClickStyle.GIVEN_UP:
            await self._submit(
                self._connection, click, payment, path, body, gives_up_after_s=self._random.uniform(0, 0.3)
            )
        else:
            await self._submit(self._connection, click, payment, path, body)

    async def _submit(
        self,
        connection: HttpConnection,
        click: str,
        payment: Payment,
        path: str,
        body: bytes,
        *,
        gives_up_after_s: float | None = None,
    ) -> None:
        """Send a form, follow its redirect, and record the click, also if it is cancelled meanwhile."""
        target = f"{self._path}{path}?lang=en"
        headers = {**self._headers(), "Content-Type": "application/x-www-form-urlencoded"}
        began_at = time()
        status: int | None = None
        page: PageKind | None = None
        try:
            if gives_up_after_s is not None:
                await connection.send_and_close("POST", target, headers, body, after_s=gives_up_after_s)
                return
            response = await connection.request("POST", target, headers, body, _CLICK_TIMEOUT_S)
            status = response.status
            page = await self._follow(connection, response)
        except NoResponseError:
            pass
        finally:
            self._recorder.add(
                CustomerClicked(
                    at=time(),
                    uuid=self._uuid,
                    began_at=began_at,
                    click=click,
                    method=payment.instrument.method,
                    script=payment.instrument.script,
                    http_status=status,
                    page=None if page is None else page.value,
                )
            )

    async def _follow(self, connection: HttpConnection, response: HttpResponse) -> PageKind:
        location = response.header("location")
        if response.status in _REDIRECTS and location is not None:
            parts = urlsplit(location)
            self._take_cookies(response)
            return await self._read_page(connection, f"{parts.path}?{parts.query}")
        return self._show(response)

    async def _read_page(self, connection: HttpConnection, target: str) -> PageKind:
        return self._show(await connection.request("GET", target, self._headers(), timeout_s=_PAGE_TIMEOUT_S))

    def _show(self, response: HttpResponse) -> PageKind:
        self._take_cookies(response)
        text = response.body.decode(errors="replace")
        self._page = page_kind(response.status, text)
        self._hidden = hidden_fields(text) or self._hidden
        return self._page

    async def _wait_until_confirmed(self) -> None:
        """Ask for the state as the script of the page does, and show the page again when it has changed."""
        deadline = monotonic() + _CONFIRMING_S
        while monotonic() < deadline:
            await asyncio.sleep(_POLL_S)
            try:
                response = await self._connection.request("GET", f"{self._path}/state", self._headers())
                if json.loads(response.body)["state"] != "processing":
                    break
            except (NoResponseError, ValueError, KeyError, TypeError):
                continue
        await self.open()

    def _headers(self) -> dict[str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        return {"Accept": "text/html", **({"Cookie": cookies} if cookies else {})}

    def _take_cookies(self, response: HttpResponse) -> None:
        for name, value in response.headers:
            if name == "set-cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                self._cookies[cookie] = content
