"""Card data and codes exist only in memory: not in PostgreSQL, Kafka, logs, metrics, pages or cookies."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from itsdangerous import base64_decode

from services.checkout.providers.sandbox import SandboxProvider
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka import clients
from shared.platform.kafka.topic_setup import ensure_topics
from tests.checkout.customer import Customer
from tests.checkout.processes import checkout_processes
from tests.checkout.test_payments import CODE, PAID, PROCESSING
from tests.checkout.world import CheckoutWorld
from tests.logs import capture_logs
from tests.waiting import eventually

Served = Callable[[CheckoutWorld, Path, Path], AbstractContextManager[Callable[[], str]]]
"""Serves the pages; yields what reads the log."""

CARDS = [
    "4242424242424242",
    "4000000000000002",
    "4000000000009995",
    "6395043835180860",
    "4000000000000077",
    "4000000000000341",
    "4000000000000259",
    "4242424242424241",  # mistyped: most of a real number
]
SECURITY_CODE = "7391"
PHONES = ["0913632323", "0921234567", "0912345995", "0912345000"]
WRONG_CODES = ["829173", "8291"]
RIGHT_CODES = ["111111", "1111"]

NUMBERS = [*CARDS, *PHONES, *(phone[1:] for phone in PHONES)]
# Short ones occur in uuids, times and process ids by chance, so they count only as separate words.
ALONE = [SECURITY_CODE, *WRONG_CODES, *RIGHT_CODES]


def found_in(text: str) -> list[str]:
    """Return the numbers found in the text, also with spaces, dashes or other digits."""
    plain = re.sub(r"(?<=\d)[ -](?=\d)", "", text.translate(str.maketrans("٠١٢٣٤٥٦٧٨٩", "0123456789")))
    whole = [number for number in NUMBERS if number in plain or number in text]
    # Process ids and response sizes in log lines are not codes.
    text = re.sub(r'pid: \d+|HTTP/1\.1\\?" \d+ \d+', "", text)
    return whole + [code for code in ALONE if re.search(rf"(?<![\w.:-]){code}(?![\w.:-])", text)]


def test_search_for_sensitive_data_finds_it() -> None:
    assert found_in("paid with ٤٢٤٢ 4242 4242 4242") == ["4242424242424242"]
    assert found_in('{"code": "111111"}') == ["111111"]
    assert found_in('{"phone": "0921234567", "code": "8291"}') == ["0921234567", "921234567", "8291"]
    assert found_in("at 12:00:01.111111, id 01-1111-1111, worker with pid: 7391, 0a8291ff") == []
    assert found_in(r'{"event": "http://127.0.0.1:80 \"POST /pay HTTP/1.1\" 200 7391"}') == []


def pay_every_way(world: CheckoutWorld) -> list[Customer]:
    """Use every method and outcome, and mistyped input. Four at a time, because some banks do not respond."""
    by_wallet = [
        *(("sadad", phone, WRONG_CODES[0], RIGHT_CODES[0]) for phone in PHONES),
        *(("adfali", phone, WRONG_CODES[1], RIGHT_CODES[1]) for phone in PHONES),
    ]
    with ThreadPoolExecutor(4) as pool:
        paying = [pool.submit(_pay_by_card, world, number) for number in CARDS]
        paying += [pool.submit(_pay_by_wallet, world, *wallet) for wallet in by_wallet]
        return [one.result() for one in paying]


def _pay_by_card(world: CheckoutWorld, number: str) -> Customer:
    customer = world.customer(world.make_intent())
    customer.pay_by_card(number, security_code=SECURITY_CODE)
    if customer.title == CODE:
        customer.enter_code(WRONG_CODES[0])
        customer.enter_code(RIGHT_CODES[0])
    return customer


def _pay_by_wallet(world: CheckoutWorld, method: str, phone: str, wrong: str, right: str) -> Customer:
    customer = world.customer(world.make_intent())
    customer.pay_by_wallet(method, phone)
    if customer.title == CODE:
        customer.enter_code(wrong + "0")
        customer.enter_code(wrong)
        customer.enter_code(right)
    return customer


@contextmanager
def served_here(world: CheckoutWorld, _root: Path, _directory: Path) -> Iterator[Callable[[], str]]:
    with capture_logs(level="debug") as log, world.serve():
        yield log.getvalue


@contextmanager
def served_by_processes(world: CheckoutWorld, root: Path, directory: Path) -> Iterator[Callable[[], str]]:
    log = directory / "log"
    quick_and_talkative = {"MIZAN_LOG_LEVEL": "DEBUG", "PROVIDER_TIMEOUT": "2"}
    service = checkout_processes(world, root, directory, **quick_and_talkative)
    with log.open("wb") as output, service.running(log=output):
        eventually(lambda: service.status() == 200)
        yield log.read_text


@pytest.mark.parametrize(
    "served",
    [served_here, pytest.param(served_by_processes, marks=pytest.mark.stack)],
    ids=["here", "processes"],
)
def test_no_sensitive_data_is_left_behind(
    world: CheckoutWorld, repository_root: Path, tmp_path: Path, served: Served
) -> None:
    ensure_topics(world.settings.kafka, ALL_TOPICS)
    with served(world, repository_root, tmp_path) as read_log:
        customers = pay_every_way(world)
        with world.verifying():
            eventually(
                lambda: not world.rows("select from payment_attempts where state in ('sent', 'unknown')")
            )
            eventually(lambda: not world.rows("select from outbox"))
        metrics = Customer(f"{world.url}/metrics").answer.text
        logs = read_log()
    titles = [customer.title for customer in customers]
    assert titles.count(PAID) >= 5
    assert titles.count(PROCESSING) == 2
    places = {
        "the database": "\n".join(_dump(world)),
        "the topics": "\n".join(_records(world)),
        "the logs": logs,
        "the ledger of the bank": world.bank.ledger.read_bytes().decode("latin-1"),
        "the metrics": metrics,
        "the pages": "\n".join(customer.answer.text for customer in customers),
        "the addresses": "\n".join(customer.answer.url for customer in customers),
        "the cookies": "\n".join(_cookies(customer) for customer in customers),
    }
    assert all(len(text) > 100 for text in places.values())
    # A page may show the customer's own phone again if it was mistyped or refused.
    places["the pages"] = re.sub(r'name="phone"[^>]*', "", places["the pages"])
    assert {name: found_in(text) for name, text in places.items()} == {name: [] for name in places}


def test_unexpected_error_leaves_no_card_data_in_the_log(
    pages: CheckoutWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A programming error while handling a card: neither the page nor the log contains it."""

    def breaks(_self: SandboxProvider, _payment: object, details: object) -> None:
        raise RuntimeError(f"could not send {details} {CARDS[0]}")

    monkeypatch.setattr(SandboxProvider, "start", breaks)
    intent = pages.make_intent()
    with capture_logs(level="debug") as stream:
        customer = pages.customer(intent)
        answer = customer.pay_by_card(CARDS[0], security_code=SECURITY_CODE)
    assert answer.status_code == 500
    assert "RuntimeError" in stream.getvalue()
    assert found_in(stream.getvalue()) == []
    assert found_in(answer.text) == []
    assert pages.attempts(intent) == [("sent", None)]


def _dump(world: CheckoutWorld) -> Iterator[str]:
    """Return every row of every table as text."""
    tables = world.rows(
        "select quote_ident(tablename) from pg_tables where schemaname = 'public' and tablename not like '%%20__\\_%%'"
    )
    for (table,) in tables:
        for (row,) in world.rows(f"select t::text from {table} as t"):
            yield str(row)


def _records(world: CheckoutWorld) -> Iterator[str]:
    """Return all records of all topics."""
    kafka = world.settings.kafka
    consumer = clients.consumer(kafka, "secrecy")
    places = [
        TopicPartition(clients.topic_name(kafka, topic.name), partition, 0)
        for topic in ALL_TOPICS
        for partition in range(topic.partitions)
    ]
    left = sum(consumer.get_watermark_offsets(place, timeout=10)[1] for place in places)
    consumer.assign(places)
    while left > 0:
        for message in consumer.consume(500, 1):
            left -= 1
            yield repr((message.key(), message.value(), message.headers()))
    consumer.close()


def _cookies(customer: Customer) -> str:
    """Return the cookies, raw and decoded."""
    texts = []
    for cookie in customer._session.cookies:
        value = cookie.value or ""
        payload = value.lstrip(".").split(".")[0]
        texts.append(f"{cookie.name}={value} {base64_decode(payload).decode('latin-1')}")
    return "\n".join(texts)
