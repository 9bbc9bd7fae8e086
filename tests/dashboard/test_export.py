"""The CSV export is complete, without formulas, in short transactions, and visibly broken if it fails."""

import codecs
import csv
import io
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self
from uuid import UUID, uuid4

import pytest
import requests

from services.dashboard.payments import export as sheet
from services.dashboard.payments.export import EXPORT_PAGE_SIZE, ExportSlots
from services.dashboard.payments.queries import Payment, PaymentPage
from shared.domain.accounts.roles import Role
from shared.domain.intents.states import IntentStatus
from shared.platform.settings import DatabaseSettings, KafkaSettings
from tests.dashboard.payment_rows import make_attempt, make_intent, make_many
from tests.dashboard.world import PASSWORD, DashboardWorld
from tests.page_client import PageClient
from tests.servers import ServiceProcess
from tests.waiting import eventually

_COLUMNS = [
    "uuid",
    "reference",
    "merchant_reference",
    "amount",
    "amount_minor",
    "currency",
    "status",
    "method",
    "created_at",
    "updated_at",
    "paid_at",
    "expires_at",
    "customer_external_id",
    "description",
    "duplicate",
]
MANY = 30_000
_LAST_CHUNK = b"0\r\n\r\n"
# Every transaction holds a lock on itself.
_IN_TRANSACTION = """
select count(distinct pid) from pg_locks join pg_stat_activity using (pid)
where datname = current_database() and pid <> pg_backend_pid() and locktype = 'virtualxid'"""


def path(world: DashboardWorld, query: str = "") -> str:
    return f"/applications/{world.application.id}/payments.csv{query}"


def rows_of(content: bytes) -> list[dict[str, str]]:
    assert content.startswith(codecs.BOM_UTF8)
    text = content.decode("utf-8-sig")
    assert text.endswith("\r\n")
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows = list(reader)
    assert reader.fieldnames == _COLUMNS
    return rows


def test_each_payment_is_exported_as_one_row(pages: DashboardWorld) -> None:
    at = datetime(2026, 5, 3, 21, 30, 15, 250_000, tzinfo=UTC)
    intent = make_intent(
        pages,
        "طلب, 7",
        IntentStatus.SUCCEEDED,
        amount=1_234_567,
        at=at,
        description='say "hi"\r\nthere',
        customer="c-1",
    )
    make_attempt(pages, intent, "paid", method="adfali")
    make_attempt(pages, intent, "duplicate", method="card")
    waiting = make_intent(pages, "order 8", at=at - timedelta(minutes=1))
    answer = pages.person(Role.VIEWER).open(path(pages))
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Disposition"].startswith(
        "attachment; filename=payments-tripoli-coffee-shop-"
    )
    first, second = rows_of(answer.content)
    reference = pages.rows("select reference from payment_intents where uuid = %s", intent)[0][0]
    assert first == {
        "uuid": str(intent),
        "reference": reference.upper(),
        "merchant_reference": "طلب, 7",
        "amount": "1234.567",
        "amount_minor": "1234567",
        "currency": "LYD",
        "status": "succeeded",
        "method": "adfali",
        "created_at": "2026-05-03T23:30:15.250+02:00",
        "updated_at": "2026-05-03T23:30:15.250+02:00",
        "paid_at": "2026-05-03T23:30:15.250+02:00",
        "expires_at": "2026-05-04T23:30:15.250+02:00",
        "customer_external_id": "c-1",
        "description": 'say "hi"\r\nthere',
        "duplicate": "yes",
    }
    assert second["uuid"] == str(waiting)
    assert (second["paid_at"], second["method"], second["description"], second["duplicate"]) == (
        "",
        "",
        "",
        "no",
    )


def test_formulas_are_escaped(pages: DashboardWorld) -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"]
    for text in texts:
        make_intent(pages, text, description=text, customer=text)
    rows = rows_of(pages.person(Role.VIEWER).open(path(pages)).content)
    for column in ("merchant_reference", "description", "customer_external_id"):
        assert {row[column] for row in rows} == {f"'{text}" for text in texts}
    assert all(row["description"] == row["merchant_reference"] for row in rows)


def test_the_export_uses_the_filters_and_records_them(pages: DashboardWorld) -> None:
    make_many(pages, 60)
    wanted = make_intent(pages, "=order 77", IntentStatus.PROCESSING)
    person = pages.person(Role.DEVELOPER)
    assert [row["uuid"] for row in rows_of(person.open(path(pages, "?status=processing")).content)] == [
        str(wanted)
    ]
    assert len(rows_of(person.open(path(pages, "?search=%3Dorder+77&from=2026-01-01")).content)) == 1
    assert rows_of(person.open(path(pages, "?status=canceled&search=%3Dorder+77")).content) == []
    noted = pages.rows(
        "select application_id, details from audit_log where action = 'payments_exported' order by id"
    )
    assert [application for application, _ in noted] == [pages.application.id] * 3
    assert [details for _, details in noted] == [
        {"status": "processing"},
        {"search": "=order 77", "from": "2026-01-01"},
        {"status": "canceled", "search": "=order 77"},
    ]


def test_export_has_each_payment_once_despite_concurrent_changes(pages: DashboardWorld) -> None:
    """Each page is one statement. New payments and new statuses neither repeat nor lose a row."""
    make_many(
        pages,
        3 * EXPORT_PAGE_SIZE + 10,
        statuses=[IntentStatus.SUCCEEDED, IntentStatus.REQUIRES_PAYMENT_METHOD],
    )
    expected = [str(row[0]) for row in pages.rows("select uuid from payment_intents order by uuid desc")]
    person = pages.person(Role.VIEWER)
    with person.session.get(f"{pages.url}{path(pages)}", stream=True, timeout=30) as answer:
        chunks = answer.iter_content(1024)
        content = next(chunks)
        make_intent(pages, "created meanwhile")
        pages.run("update payment_intents set status = 'canceled' where status = 'requires_payment_method'")
        content += b"".join(chunks)
    assert [row["uuid"] for row in rows_of(content)] == expected


def test_export_reads_pages_only_when_they_are_needed() -> None:
    """Memory holds one page."""
    asked: list[UUID | None] = []

    def page_before(before: UUID | None) -> PaymentPage:
        asked.append(before)
        return PaymentPage([payment()], uuid4() if len(asked) < 5 else None)

    lines = sheet.stream_csv(page_before)
    assert len(asked) == 1
    next(lines)
    next(lines)
    assert len(asked) == 1
    assert sum(1 for _ in lines) == 4
    assert len(asked) == 5


def test_failed_export_ends_with_an_error_line_and_raises() -> None:
    pages = iter([PaymentPage([payment()], uuid4())])

    def page_before(_before: UUID | None) -> PaymentPage:
        try:
            return next(pages)
        except StopIteration:
            raise ConnectionError from None

    lines = sheet.stream_csv(page_before)
    written: list[bytes] = []
    with pytest.raises(ConnectionError):
        written.extend(lines)
    assert sheet.INCOMPLETE.encode() in written[-1]
    for line in sheet.stream_csv(lambda _: PaymentPage([], None)):
        assert sheet.INCOMPLETE.encode() not in line


def payment() -> Payment:
    now = datetime.now(UTC)
    return Payment(uuid4(), "a", "b", 1000, "LYD", "succeeded", None, None, now, now, now, "card", False)


@pytest.fixture
def process(
    world: DashboardWorld,
    repository_root: Path,
    database_settings: DatabaseSettings,
    kafka_settings: KafkaSettings,
) -> Iterator[ServiceProcess]:
    """The dashboard in gunicorn as in production, with more payments than fit into the socket buffers."""
    make_many(world, MANY, apart=timedelta(milliseconds=100))
    service = ServiceProcess(
        "services.dashboard",
        repository_root,
        database_settings,
        kafka_settings,
        MIZAN_SECRET_KEYS=",".join(world.settings.secret_keys),
        DASHBOARD_WORKERS="1",
        DASHBOARD_THREADS="8",
    )
    with service.running():
        eventually(lambda: service.status() == 200)
        yield service


class SlowReader:
    """A client that reads so slowly that the server has to wait."""

    def __init__(self, person: PageClient, port: int, address: str) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(30)
        self.socket.connect(("127.0.0.1", port))
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in person.session.cookies)
        request = f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/html\r\nCookie: {cookies}\r\n\r\n"
        self.socket.sendall(request.encode())
        self.beginning = self.socket.recv(2048)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def rest(self) -> bytes:
        parts = []
        while part := self.socket.recv(65536):
            parts.append(part)
            if part.endswith(_LAST_CHUNK):
                break
        return b"".join(parts)


def export_once_there_is_room(person: PageClient, address: str) -> requests.Response:
    """Request an export, and repeat it until the slot of the previous export is released."""

    def export() -> requests.Response | None:
        answer = person.session.get(f"{person.url}{address}", stream=True, timeout=30)
        if answer.status_code == 200:
            return answer
        answer.close()
        return None

    answer = eventually(export)
    assert answer is not None
    return answer


def signed_in(world: DashboardWorld, service: ServiceProcess) -> PageClient:
    person = PageClient(f"http://127.0.0.1:{service.port}")
    person.sign_in(world.make_member(Role.VIEWER), PASSWORD)
    return person


@pytest.mark.stack
def test_slow_reader_of_an_export_keeps_no_transaction_open(
    world: DashboardWorld, process: ServiceProcess
) -> None:
    with SlowReader(signed_in(world, process), process.port, path(world)) as reader:
        assert b"200 OK" in reader.beginning
        # The server has filled the socket buffers and waits, with no transaction open.
        eventually(lambda: world.rows(_IN_TRANSACTION) == [(0,)])
        world.run("alter table payment_intents add column proof_that_nobody_holds_a_lock text")
        rest = reader.rest()
    assert rest.endswith(_LAST_CHUNK)
    oldest = world.rows("select uuid from payment_intents order by uuid limit 1")[0][0]
    assert str(oldest).encode() in rest


@pytest.mark.stack
def test_an_export_that_fails_midway_breaks_the_connection(
    world: DashboardWorld, process: ServiceProcess
) -> None:
    """The last line says so, and the last chunk is missing, so clients notice that the file is incomplete."""
    person = signed_in(world, process)
    with SlowReader(person, process.port, path(world)) as reader:
        world.run("alter table payment_intents rename column description to gone")
        rest = reader.rest()
    assert not rest.endswith(_LAST_CHUNK)
    assert sheet.INCOMPLETE.encode() in rest
    world.run("alter table payment_intents rename column gone to description")
    with export_once_there_is_room(person, path(world)) as answer:
        assert len(rows_of(answer.content)) == MANY
    with export_once_there_is_room(person, path(world)) as answer:
        chunks = answer.iter_content(1024)
        next(chunks)
        world.run("alter table payment_intents rename column description to gone")
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            for _ in chunks:
                pass


@pytest.mark.stack
def test_exports_leave_threads_for_pages(world: DashboardWorld, process: ServiceProcess) -> None:
    """Each merchant has one slot. A second export gets a 503 until the first has finished."""
    person = signed_in(world, process)
    with SlowReader(person, process.port, path(world)):
        refused = person.open(path(world))
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        assert person.open(f"/applications/{world.application.id}/payments").status_code == 200
    eventually(lambda: person.open(path(world)).status_code == 200)
    assert world.audit().count("payments_exported") == 2


def test_exports_of_one_merchant_do_not_block_those_of_others() -> None:
    slots = ExportSlots(2)
    first, second, third = uuid4(), uuid4(), uuid4()
    assert (slots.acquire(first), slots.acquire(first), slots.acquire(second), slots.acquire(third)) == (
        True,
        False,
        True,
        False,
    )
    slots.release(first)
    assert slots.acquire(third)


def test_a_head_request_is_not_recorded_as_an_export(pages: DashboardWorld) -> None:
    person = pages.person(Role.VIEWER)
    assert person.session.head(f"{person.url}{path(pages)}", timeout=30).status_code == 200
    assert "payments_exported" not in pages.audit()
