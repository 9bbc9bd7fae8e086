"""A body that is not a JSON object is 422 with `errors.body`. One over 64 KiB is 413 (DESIGN §3)."""

import io
import json
from time import thread_time
from typing import Any

import pytest

from shared.platform.database.pool import Database
from tests.api.conftest import PATH, Merchant, data_of, errors_of, written

VALID = '{"merchant_reference": "order-1", "amount": 1000, "currency": "LYD"}'
LIMIT = 64 * 1024
FAST_S = 1.5
"""Of processor time, for the worst that 64 KiB can hold; a usual create takes a thousandth of a second."""


def _with(more: str) -> str:
    """Return a valid body with `more` added."""
    return f"{VALID[:-1]}, {more}}}"


def test_body_that_is_not_a_json_object_is_422(
    merchant: Merchant, database: Database, subtests: pytest.Subtests
) -> None:
    """DESIGN §3: the error is about the body, not about fields, and nothing is created."""
    rows: list[tuple[str, bytes]] = [
        ("empty", b""),
        ("blank", b" \r\n\t"),
        ("a list", f"[{VALID}]".encode()),
        ("an empty list", b"[]"),
        ("a string", json.dumps(VALID).encode()),
        ("a number", b"1000"),
        ("null", b"null"),
        ("true", b"true"),
        ("words", b"merchant_reference is order-1"),
        ("a form", b"merchant_reference=order-1&amount=1000&currency=LYD"),
        ("XML", b"<amount>1000</amount>"),
        ("cut off", VALID[:-1].encode()),
        ("cut off in a string", VALID[:-3].encode()),
        ("one bracket", b"{"),
        ("two objects", f"{VALID} {VALID}".encode()),
        ("something behind", f"{VALID};".encode()),
        ("a comma too many", VALID.replace("}", ",}").encode()),
        ("single quotes", VALID.replace('"', "'").encode()),
        ("a comment", VALID.replace("{", "{ // order\n").encode()),
        ("a line's end in a string", VALID.replace("order", "or\nder").encode()),
        ("an escape that is none", VALID.replace("order", r"or\der").encode()),
        ("half an escape", VALID.replace("order", r"\u12").encode()),
        ("Python's None", _with('"note": None').encode()),
        ("NaN", _with('"note": NaN').encode()),
        ("Infinity", VALID.replace("1000", "Infinity").encode()),
        ("-Infinity", _with('"note": [-Infinity]').encode()),
        ("a leading zero", VALID.replace("1000", "01000").encode()),
        ("hexadecimal", VALID.replace("1000", "0x3e8").encode()),
        ("5,000 digits", VALID.replace("1000", "9" * 5000).encode()),
        ("5,000 digits where nobody looks", _with('"note": ' + "9" * 5000).encode()),
        ("not UTF-8", VALID.replace("order", "ördér").encode("latin-1")),
        ("overlong UTF-8", VALID.encode().replace(b"order", b"\xc0\xaf")),
        ("a surrogate in UTF-8", VALID.encode().replace(b"order", b"\xed\xa0\x80")),
        ("UTF-16", VALID.encode("utf-16")),
        ("UTF-16 without a mark", VALID.encode("utf-16-le")),
        ("UTF-32", VALID.encode("utf-32")),
        ("a byte order mark", VALID.encode("utf-8-sig")),
        ("NUL behind", VALID.encode() + b"\0"),
        ("compressed", b"\x1f\x8b\x08\x00\x00\x00\x00\x00"),
    ]
    for why, body in rows:
        with subtests.test(why):
            assert set(errors_of(merchant.post(body))) == {"body"}
    assert written(database) == (0, 0, 0)


def test_duplicate_key_is_422(merchant: Merchant, database: Database, subtests: pytest.Subtests) -> None:
    """DESIGN §3: in objects at any depth, because it is unclear which value is meant."""
    rows = [
        _with('"amount": 1000'),  # even if the values are the same
        _with('"amount": 2000'),
        _with(r'"\u0061mount": 2000'),  # the same key, escaped
        _with('"metadata": {"a": "1", "a": "2"}'),
        _with('"customer": {"external_id": "a", "external_id": "b"}'),
        _with('"unknown": 1, "unknown": 1'),
        _with('"unknown": [{"deep": {"x": 1, "y": 2, "x": 3}}]'),
        _with('"unknown": {"": 1, "": 1}'),
        _with(r'"unknown": {"\ud800": 1, "\ud800": 1}'),
    ]
    for body in rows:
        with subtests.test(body=body[68:]):
            assert set(errors_of(merchant.post(body))) == {"body"}
    assert written(database) == (0, 0, 0)


def test_same_key_in_different_objects_is_accepted(merchant: Merchant) -> None:
    """DESIGN §3: only keys within one object are duplicates."""
    body = _with('"metadata": {"amount": "1", "Amount": "2"}, "customer": {"amount": 3}, "more": [{}, {}]')
    data = data_of(merchant.post(body), 201)
    assert (data["amount"], data["metadata"]) == (1000, {"amount": "1", "Amount": "2"})


def test_deep_nesting_is_refused_fast(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """DESIGN §3: with 422, without a stack overflow, and with little CPU time."""
    rows = [
        ("open", "[" * 50_000),
        ("closed", "[" * 25_000 + "]" * 25_000),
        ("objects", '{"a":' * 12_000),
        ("where nobody looks", _with('"note": ' + "[" * 25_000 + "]" * 25_000)),
        ("in metadata", _with('"metadata": {"a": ' + "[{" * 5_000 + "}]" * 5_000 + "}")),
    ]
    merchant.create()  # warm-up: the first request costs more
    for why, body in rows:
        with subtests.test(why):
            before = thread_time()
            assert set(errors_of(merchant.post(body))) == {"body"}
            assert thread_time() - before < FAST_S


def test_duplicate_key_among_thousands_is_refused_fast(merchant: Merchant) -> None:
    """DESIGN §3: finding it must not take quadratic time."""
    names = [f"{n:x}" for n in range(7_700)]
    body = "{" + ",".join(f'"{name}":1' for name in [*names, names[-1]]) + "}"
    assert len(body) < LIMIT
    merchant.create()
    before = thread_time()
    assert set(errors_of(merchant.post(body))) == {"body"}
    assert thread_time() - before < FAST_S


def test_usual_nesting_and_brackets_in_strings_are_accepted(
    merchant: Merchant, subtests: pytest.Subtests
) -> None:
    """DESIGN §3: unknown fields are ignored, so they may be nested."""
    rows: list[tuple[str, dict[str, Any]]] = [
        ("brackets in a string", {"description": "[{" * 20_000}),
        ("behind escaped quotes", {"description": '\\"[' * 10_000}),
        ("behind backslashes", {"description": "\\" * 101 + "[" * 200}),
        ("many side by side", {"note": [[] for _ in range(10_000)]}),
        ("fifty levels", {"note": json.loads("[" * 50 + "]" * 50)}),
    ]
    for why, fields in rows:
        with subtests.test(why):
            data = data_of(merchant.create(merchant_reference=why, **fields), 201)
            assert data["description"] == fields.get("description")


def test_body_over_64_kib_is_413(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """DESIGN §3: exactly 64 KiB is accepted."""
    data_of(merchant.post(VALID.ljust(LIMIT)), 201)
    rows = [
        VALID.ljust(LIMIT + 1),
        VALID.ljust(10 * LIMIT),
        "[" * (LIMIT + 1),  # not JSON
    ]
    for body in rows:
        with subtests.test(size=len(body)):
            answer = merchant.post(body)
            assert answer.status_code == 413
            assert answer.content_type == "application/json"
            assert list(answer.get_json()) == ["message"]


@pytest.mark.parametrize(("size", "status"), [(LIMIT, 201), (LIMIT + 1, 413)])
def test_body_limit_holds_without_a_content_length(merchant: Merchant, size: int, status: int) -> None:
    """DESIGN §3: a chunked body is read completely or refused, never truncated."""
    answer = merchant.client.post(
        PATH,
        input_stream=io.BytesIO(VALID.ljust(size).encode()),
        headers={**merchant.headers, "Transfer-Encoding": "chunked"},
        environ_overrides={"CONTENT_LENGTH": "", "wsgi.input_terminated": True},
    )
    assert answer.status_code == status
    assert answer.content_type == "application/json"


def test_content_type_is_ignored(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """DESIGN §3: JSON is accepted with any Content-Type, and a form is refused with any."""
    rows = [
        {"Content-Type": "application/json"},
        {"Content-Type": "application/json; charset=iso-8859-1"},  # JSON is UTF-8
        {"Content-Type": "application/x-www-form-urlencoded"},  # the default of curl
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "nonsense"},
        {"Content-Type": ""},
        {},  # not sent
    ]
    for number, said in enumerate(rows):
        with subtests.test(said=said):
            headers = {**merchant.headers, **said}
            body = _with('"description": "طلب"').replace("order-1", f"order-{number}").encode()
            data = data_of(merchant.client.post(PATH, data=body, headers=headers), 201)
            assert data["description"] == "طلب"
            form = b"merchant_reference=order-1&amount=1000&currency=LYD"
            assert set(errors_of(merchant.client.post(PATH, data=form, headers=headers))) == {"body"}
