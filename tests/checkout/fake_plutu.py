"""A fake Plutu on loopback, as strict as DESIGN §4 describes it, with a ledger. Tests can make it misbehave."""

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Event, Lock, Thread
from typing import Any, Self
from urllib.parse import parse_qsl, quote_plus

Fields = Mapping[str, str]
Pairs = list[tuple[str, str]]

API_KEY = "key-of-the-shop"
ACCESS_TOKEN = "token-of-the-shop"
SECRET_KEY = "hush-what-returns-are-signed-with"

_AMOUNT = re.compile(r"[0-9]+(\.[0-9]{1,2})?")
_INVOICE = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Misbehaviour:
    """A misbehaviour after the request was read. `None` as the response means no response."""

    status: int = 200
    says: bytes | None = None
    hangs: bool = False
    works_first: bool = False
    """Whether it processes the request before it misbehaves."""


HANGS = Misbehaviour(hangs=True)
DROPS = Misbehaviour()


def saying(status: int, body: object) -> Misbehaviour:
    return Misbehaviour(status, body if isinstance(body, bytes) else json.dumps(body).encode())


def failing(status: int, code: str) -> Misbehaviour:
    return saying(status, {"error": {"status": status, "code": code, "message": "They say: no."}})


@dataclass(frozen=True)
class Charge:
    gateway: str
    invoice_no: str
    amount: str
    transaction_id: str


@dataclass(frozen=True)
class Process:
    gateway: str
    phone: str
    amount: str


@dataclass(frozen=True)
class CardPage:
    invoice_no: str
    amount: str
    return_url: str


@dataclass(frozen=True)
class Request:
    path: str
    headers: Fields
    fields: Fields


class Refused(Exception):  # noqa: N818  an answer, not an error
    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code


@dataclass
class FakePlutu:
    codes: dict[str, str] = field(default_factory=lambda: {"sadadapi": "123456", "edfali": "1234"})
    misbehaviour: Misbehaviour | None = None
    requests: list[Request] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """A request that violates Plutu's documentation."""
    charges: list[Charge] = field(default_factory=list)
    processes: dict[str, Process] = field(default_factory=dict)
    pages: dict[str, CardPage] = field(default_factory=dict)
    _invoices: set[str] = field(default_factory=set)
    _numbers: "count[int]" = field(default_factory=lambda: count(7001))
    _lock: Lock = field(default_factory=Lock)
    _stop: Event = field(default_factory=Event)

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), name="plutu", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/api/v1"

    def pay(self, page_url: str) -> str:
        """Pay on the page and return the URL that the customer is redirected to."""
        page = self.pages[page_url]
        charge = self._charge("localbankcards", page.invoice_no, page.amount)
        return self._back(page, [("approved", "1")], [("transaction_id", charge.transaction_id)])

    def cancel(self, page_url: str) -> str:
        return self._back(self.pages[page_url], [("canceled", "1")], [])

    def wait_while_hanging(self) -> None:
        self._stop.wait(30)

    def answer(self, request: Request) -> tuple[int, object]:
        with self._lock:
            self.requests.append(request)
            if self.misbehaviour and not self.misbehaviour.works_first:
                return 0, None
            try:
                return 200, {"status": 200, "result": self._result(request)}
            except Refused as refused:
                error = {"status": refused.status, "code": refused.code, "message": "They say: no."}
                return refused.status, {"error": error}

    def _result(self, request: Request) -> dict[str, Any]:
        headers = request.headers
        if (headers.get("Authorization"), headers.get("X-API-KEY")) != (f"Bearer {ACCESS_TOKEN}", API_KEY):
            raise Refused(401, "UNAUTHORIZED")
        if headers.get("Content-Type") != "application/x-www-form-urlencoded":
            raise self._complaint("the body is no form")
        actions: dict[str, Callable[[Fields], dict[str, Any]]] = {
            "sadadapi/verify": self._verify_sadad,
            "edfali/verify": self._verify_edfali,
            "sadadapi/confirm": lambda fields: self._confirm("sadadapi", fields),
            "edfali/confirm": lambda fields: self._confirm("edfali", fields),
            "localbankcards/confirm": self._open_page,
        }
        action = actions.get(request.path.removeprefix("/api/v1/transaction/"))
        if action is None:
            raise self._complaint(f"there is no {request.path}", 404)
        return action(request.fields)

    def _verify_sadad(self, fields: Fields) -> dict[str, Any]:
        self._check_names(fields, "mobile_number", "birth_year", "amount")
        year = fields["birth_year"]
        is_of_age = re.fullmatch("[0-9]{4}", year) and 1940 <= int(year) <= datetime.now(UTC).year - 12
        if not is_of_age or not re.fullmatch("09[13][0-9]{7}", fields["mobile_number"]):
            raise Refused(400, "INVALID_MOBILE_NUMBER_OR_BIRTH_YEAR")
        return self._send_code("sadadapi", fields)

    def _verify_edfali(self, fields: Fields) -> dict[str, Any]:
        self._check_names(fields, "mobile_number", "amount")
        if not re.fullmatch("09[1-6][0-9]{7}", fields["mobile_number"]):
            raise Refused(400, "INVALID_MOBILE_NUMBER")
        return self._send_code("edfali", fields)

    def _send_code(self, gateway: str, fields: Fields) -> dict[str, Any]:
        process = next(self._numbers)
        self.processes[str(process)] = Process(gateway, fields["mobile_number"], fields["amount"])
        return {"process_id": process}

    def _confirm(self, gateway: str, fields: Fields) -> dict[str, Any]:
        self._check_names(fields, "process_id", "code", "amount", "invoice_no")
        process = self.processes.get(fields["process_id"])
        if process is None or (process.gateway, process.amount) != (gateway, fields["amount"]):
            raise self._complaint("this process is unknown, or another gateway's, or of another amount")
        self._use_up(fields["invoice_no"])
        if fields["code"] != self.codes[gateway]:
            raise Refused(400, "INVLIAD_OTP")
        # Plutu does not promise to charge a process only once: only the invoice prevents a second charge.
        charge = self._charge(gateway, fields["invoice_no"], fields["amount"])
        return {"transaction_id": charge.transaction_id, "amount": charge.amount}

    def _open_page(self, fields: Fields) -> dict[str, Any]:
        self._check_names(fields, "amount", "invoice_no", "return_url", "lang")
        if fields["lang"] not in ("ar", "en") or "?" in fields["return_url"]:
            raise self._complaint("lang or return_url is wrong")
        self._use_up(fields["invoice_no"])
        url = f"https://pages.plutu.example/pay/{next(self._numbers)}?step=1"
        self.pages[url] = CardPage(fields["invoice_no"], fields["amount"], fields["return_url"])
        return {"redirect_url": url}

    def _check_names(self, fields: Fields, *names: str) -> None:
        if set(fields) != set(names):
            raise self._complaint(f"the fields are {sorted(fields)}, not {sorted(names)}")
        if not _AMOUNT.fullmatch(fields["amount"]):
            raise self._complaint("the amount has more than 2 decimals, or is none")

    def _use_up(self, invoice_no: str) -> None:
        if not _INVOICE.fullmatch(invoice_no):
            raise self._complaint("the invoice_no has other characters")
        if invoice_no in self._invoices:
            raise Refused(400, "DUPLICATED_INVOICE_NUMBER")
        self._invoices.add(invoice_no)

    def _charge(self, gateway: str, invoice_no: str, amount: str) -> Charge:
        charge = Charge(gateway, invoice_no, amount, f"T{next(self._numbers)}")
        self.charges.append(charge)
        return charge

    def _back(self, page: CardPage, verdict: Pairs, rest: Pairs) -> str:
        said = [("invoice_no", page.invoice_no), ("amount", page.amount)]
        query = as_query(signed([("gateway", "localbankcards"), *verdict, *said, *rest]))
        return f"{page.return_url}?{query}"

    def _complaint(self, text: str, status: int = 422) -> Refused:
        self.complaints.append(text)
        return Refused(status, "VALIDATION_ERROR")


def signed(parameters: Pairs, key: str = SECRET_KEY) -> Pairs:
    """Return the parameters with their signature, `hashed`, at the end."""
    digest = hmac.new(key.encode(), as_query(parameters).encode(), hashlib.sha256).hexdigest()
    return [*parameters, ("hashed", digest.upper())]


def as_query(parameters: Pairs) -> str:
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in parameters)


def _handler_of(plutu: FakePlutu) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            fields = dict(parse_qsl(body, keep_blank_values=True, strict_parsing=True))
            status, answer = plutu.answer(Request(self.path, dict(self.headers), fields))
            told = plutu.misbehaviour
            if told is None:
                self._say(status, json.dumps(answer).encode())
            elif told.hangs:
                plutu.wait_while_hanging()
            elif told.says is not None:
                self._say(told.status, told.says)

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing, because it would mix with the output of pytest."""

    return Handler
