"""The fields of a create (§4.1, §8), and the 422 for invalid ones (§7)."""

from typing import Any

import pytest

from shared.platform.database.pool import Database
from tests.api.conftest import Merchant, data_of, errors_of, written

Row = tuple[str, dict[str, Any], set[str]]
"""Why, the fields sent, the names that fail."""

LONE = "\ud800"  # a lone surrogate: valid in JSON, but not in text
REFUSED: list[Row] = [
    ("merchant_reference null", {"merchant_reference": None}, {"merchant_reference"}),
    ("merchant_reference empty", {"merchant_reference": ""}, {"merchant_reference"}),
    ("256 letters", {"merchant_reference": "a" * 256}, {"merchant_reference"}),
    ("256 Arabic letters", {"merchant_reference": "ط" * 256}, {"merchant_reference"}),
    ("256 emoji", {"merchant_reference": "☕" * 255 + "😀"}, {"merchant_reference"}),
    ("merchant_reference a number", {"merchant_reference": 77}, {"merchant_reference"}),
    ("merchant_reference true", {"merchant_reference": True}, {"merchant_reference"}),
    ("merchant_reference a list", {"merchant_reference": ["a"]}, {"merchant_reference"}),
    ("merchant_reference an object", {"merchant_reference": {}}, {"merchant_reference"}),
    ("amount null", {"amount": None}, {"amount"}),
    ("one below the minimum", {"amount": 999}, {"amount"}),
    ("one above the maximum", {"amount": 1_000_000_001}, {"amount"}),
    ("nothing", {"amount": 0}, {"amount"}),
    ("negative", {"amount": -25_000}, {"amount"}),
    ("more than 64 bits", {"amount": 2**64 + 25_000}, {"amount"}),
    ("a thousand digits", {"amount": 10**1000}, {"amount"}),
    ("a whole float", {"amount": 25_000.0}, {"amount"}),
    ("a fraction", {"amount": 25_000.5}, {"amount"}),
    ("digits in quotes", {"amount": "25000"}, {"amount"}),
    ("amount empty", {"amount": ""}, {"amount"}),
    ("true", {"amount": True}, {"amount"}),
    ("false", {"amount": False}, {"amount"}),
    ("amount a list", {"amount": [25_000]}, {"amount"}),
    ("amount an object", {"amount": {"value": 25_000}}, {"amount"}),
    ("currency null", {"currency": None}, {"currency"}),
    ("another currency", {"currency": "USD"}, {"currency"}),
    ("another, lower case", {"currency": "usd"}, {"currency"}),
    ("ISO 4217 is in capitals", {"currency": "lyd"}, {"currency"}),
    ("a space behind", {"currency": "LYD "}, {"currency"}),
    ("a line behind", {"currency": "LYD\n"}, {"currency"}),
    ("LYD's number", {"currency": 434}, {"currency"}),
    ("several", {"currency": ["LYD"]}, {"currency"}),
    ("currency empty", {"currency": ""}, {"currency"}),
    ("description a number", {"description": 5}, {"description"}),
    ("description false", {"description": False}, {"description"}),
    ("description a list", {"description": ["Two", "coffees"]}, {"description"}),
    ("description an object", {"description": {"en": "Coffee"}}, {"description"}),
    ("customer a string", {"customer": "c-9"}, {"customer"}),
    ("customer a number", {"customer": 9}, {"customer"}),
    ("customer a list", {"customer": [{"external_id": "c-9"}]}, {"customer"}),
    ("customer an empty list", {"customer": []}, {"customer"}),
    ("customer false", {"customer": False}, {"customer"}),
    ("external_id a number", {"customer": {"external_id": 9}}, {"customer.external_id"}),
    ("external_id true", {"customer": {"external_id": True}}, {"customer.external_id"}),
    ("external_id a list", {"customer": {"external_id": ["c-9"]}}, {"customer.external_id"}),
    ("external_id an object", {"customer": {"external_id": {}}}, {"customer.external_id"}),
    ("metadata a string", {"metadata": "color=red"}, {"metadata"}),
    ("metadata a list", {"metadata": [["color", "red"]]}, {"metadata"}),
    ("metadata an empty list", {"metadata": []}, {"metadata"}),
    ("metadata a number", {"metadata": 1}, {"metadata"}),
    ("metadata false", {"metadata": False}, {"metadata"}),
    ("21 keys", {"metadata": {f"key {n}": "" for n in range(21)}}, {"metadata"}),
    ("a key of 41", {"metadata": {"k" * 41: ""}}, {"metadata." + "k" * 41}),
    ("an Arabic key of 41", {"metadata": {"ط" * 41: ""}}, {"metadata." + "ط" * 41}),
    ("a value of 256", {"metadata": {"color": "v" * 256}}, {"metadata.color"}),
    ("256 emoji as a value", {"metadata": {"color": "😀" * 256}}, {"metadata.color"}),
    ("a number as a value", {"metadata": {"color": 5}}, {"metadata.color"}),
    ("a float as a value", {"metadata": {"color": 0.5}}, {"metadata.color"}),
    ("true as a value", {"metadata": {"color": True}}, {"metadata.color"}),
    ("null as a value", {"metadata": {"color": None}}, {"metadata.color"}),
    ("an object as a value", {"metadata": {"color": {"r": "1"}}}, {"metadata.color"}),
    ("a list as a value", {"metadata": {"color": ["red"]}}, {"metadata.color"}),
    ("a dotted key", {"metadata": {"a.b": 1}}, {"metadata.a.b"}),
    ("NUL: reference", {"merchant_reference": "a\0b"}, {"merchant_reference"}),
    ("NUL: currency", {"currency": "LYD\0"}, {"currency"}),
    ("NUL: description", {"description": "\0"}, {"description"}),
    ("NUL: customer", {"customer": {"external_id": "c\0"}}, {"customer.external_id"}),
    ("NUL: return_url", {"return_url": "https://shop.example/\0"}, {"return_url"}),
    ("NUL: a value", {"metadata": {"color": "red\0"}}, {"metadata.color"}),
    ("NUL: a key", {"metadata": {"col\0r": "red"}}, {"metadata.col\0r"}),
    ("lone: reference", {"merchant_reference": LONE}, {"merchant_reference"}),
    ("lone: reference, the other half", {"merchant_reference": "a\udfff"}, {"merchant_reference"}),
    ("lone: halves in the wrong order", {"description": "\ude00\ud83d"}, {"description"}),
    ("lone: currency", {"currency": LONE}, {"currency"}),
    ("lone: description", {"description": f"طلب {LONE} رقم"}, {"description"}),
    ("lone: customer", {"customer": {"external_id": LONE}}, {"customer.external_id"}),
    ("lone: return_url", {"return_url": f"https://shop.example/{LONE}"}, {"return_url"}),
    ("lone: a value", {"metadata": {"color": LONE}}, {"metadata.color"}),
    ("lone: a key, told without it", {"metadata": {f"c{LONE}": "red"}}, {"metadata.c?"}),
]

ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("the minimum", {"amount": 1_000}),
    ("the maximum", {"amount": 1_000_000_000}),
    ("a reference of one character", {"merchant_reference": "1"}),
    ("255 letters", {"merchant_reference": "a" * 255}),
    ("255 Arabic letters", {"merchant_reference": "ط" * 255}),
    ("255 emoji, which are 1020 bytes", {"merchant_reference": "😀" * 255}),
    ("20 keys", {"metadata": {f"key {n}": "" for n in range(20)}}),
    ("a key of 40", {"metadata": {"k" * 40: "red"}}),
    ("40 emoji as a key", {"metadata": {"😀" * 40: "red"}}),
    ("a value of 255", {"metadata": {"color": "v" * 255}}),
    ("255 Arabic letters as a value", {"metadata": {"color": "ط" * 255}}),
    ("a description of 10,000 characters", {"description": "ط" * 10_000}),
]


def test_invalid_fields_are_422_and_named(
    merchant: Merchant, database: Database, subtests: pytest.Subtests
) -> None:
    """§4.1, §7: 422 names exactly the fields that fail, and nothing is created."""
    for why, fields, failing in REFUSED:
        with subtests.test(why):
            assert set(errors_of(merchant.create(**fields))) == failing
    assert written(database) == (0, 0, 0)


def test_required_fields_must_be_sent(merchant: Merchant) -> None:
    """§4.1: there are three."""
    assert set(errors_of(merchant.post("{}"))) == {"merchant_reference", "amount", "currency"}


def test_values_at_the_limits_are_accepted(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§8: lengths count characters, not bytes."""
    for why, fields in ACCEPTED:
        with subtests.test(why):
            data = data_of(merchant.create(**{"merchant_reference": why, **fields}), 201)
            assert {name: data[name] for name in fields} == fields


def test_amount_must_be_a_json_integer(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """DESIGN §3: other notations of the same number are refused."""
    rows = [
        "25000.0",
        "25e3",  # the same number, but not a JSON integer
        "1E3",
        "2.5e4",
        "250000e-1",
        "1e400",  # larger than any float
        "-0",
        "9" * 4000,
    ]
    for amount in rows:
        with subtests.test(amount=amount[:10]):
            body = f'{{"merchant_reference": "order-1", "currency": "LYD", "amount": {amount}}}'
            assert set(errors_of(merchant.post(body))) == {"amount"}


def test_escaped_text_is_the_same_as_plain_text(merchant: Merchant) -> None:
    """DESIGN §3: a surrogate pair is one character. Only lone surrogates are refused."""
    pair = r"\ud83d\ude00"
    body = '{"merchant_reference": "%s", "currency": "LYD", "amount": 1000, "description": "%s"}'
    data = data_of(merchant.post(body % (pair * 255, r"\u0637\u0644\u0628")), 201)
    assert (data["merchant_reference"], data["description"]) == ("😀" * 255, "طلب")


def test_unknown_fields_are_ignored_whatever_they_contain(merchant: Merchant) -> None:
    """DESIGN §3: also within `customer`."""
    unknown: dict[str, Any] = {"note": f"\0{LONE}", f"{LONE}\0": 1, "deep": {"\0": [LONE, 1e300]}}
    data = data_of(merchant.create(customer={"external_id": "c-9", f"x{LONE}": "\0"}, **unknown), 201)
    assert data["customer"] == {"external_id": "c-9"}


def test_metadata_errors_are_reported_under_any_key(merchant: Merchant, subtests: pytest.Subtests) -> None:
    """§7: as `metadata.` and the key, also if the key is a field name."""
    rows = ["", "body", "metadata", "amount", "_schema"]  # marshmallow uses the last one itself
    for key in rows:
        with subtests.test(key=key):
            assert set(errors_of(merchant.create(metadata={key: 1}))) == {f"metadata.{key}"}


def test_all_failing_fields_are_reported_at_once(merchant: Merchant) -> None:
    """DESIGN §3: under flat, dotted names, each with a list of strings."""
    errors = errors_of(
        merchant.create(
            merchant_reference="",
            amount="25000",
            currency="USD",
            customer={"external_id": 9},
            description=5,
            return_url="javascript:alert(1)",
            metadata={"color": 1, "size": "L", "k" * 41: None},
            expires_at="tomorrow",
        )
    )
    assert set(errors) == {
        "merchant_reference",
        "amount",
        "currency",
        "customer.external_id",
        "description",
        "return_url",
        "metadata.color",
        "metadata." + "k" * 41,
        "expires_at",
    }
    assert len(errors["metadata." + "k" * 41]) == 2  # one for the key, one for the value


def test_long_metadata_key_is_shortened_in_the_error(merchant: Merchant) -> None:
    (name,) = errors_of(merchant.create(metadata={"k" * 50_000: "v"}))
    assert name.startswith("metadata.kkkk")
    assert len(name) < 200
