"""The fast fields and schemas accept and refuse the same as marshmallow."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from marshmallow import ValidationError

from services.api.create_schema import CreateSchema
from services.api.fields import FastField, FastSchema

SCHEMA = CreateSchema()

ANYTHING = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=300),
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=45), inner, max_size=22)
    ),
    max_leaves=25,
)
LIKELY = {
    "merchant_reference": some.text(max_size=256),
    "amount": some.integers(900, 1_000_000_100),
    "currency": some.sampled_from(["LYD", "USD"]),
    "customer": some.dictionaries(some.just("external_id"), some.text() | some.none()),
    "description": some.text(),
    "return_url": some.sampled_from(
        ["https://shop.example/1", "javascript:alert(1)", "https://[", "http://"]
    ),
    "metadata": some.dictionaries(some.text(max_size=41), some.text(max_size=256)),
    "expires_at": some.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
    "unknown": ANYTHING,
}
BODIES = some.fixed_dictionaries({}, optional={name: likely | ANYTHING for name, likely in LIKELY.items()})


def _outcome(data: dict[str, Any]) -> tuple[str, Any]:
    try:
        return "valid", SCHEMA.load(data)
    except ValidationError as error:
        return "refused", (_without_schema(error.messages), error.valid_data)


def _without_schema(messages: Any) -> Any:
    """Flatten the errors of whole objects, which marshmallow nests under the key `_schema`."""
    if not isinstance(messages, dict):
        return messages
    if set(messages) == {"_schema"}:
        return messages["_schema"]
    return {name: _without_schema(inner) for name, inner in messages.items()}


@settings(max_examples=25)
@given(BODIES)
def test_fast_schema_agrees_with_marshmallow(data: dict[str, Any]) -> None:
    """Same values, or same messages and same valid data, for any body."""
    _assert_agreement(data)


@pytest.mark.long
@settings(max_examples=1000)
@given(BODIES)
def test_fast_schema_agrees_with_marshmallow_on_many_bodies(data: dict[str, Any]) -> None:
    _assert_agreement(data)


def _assert_agreement(data: dict[str, Any]) -> None:
    ours = _outcome(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(FastField, "deserialize")
        patch.delattr(FastSchema, "load")
        theirs = _outcome(data)
    if isinstance(data.get("customer"), dict) and theirs[0] == "refused":
        # marshmallow also keeps the valid part of a nested object that failed. The API does not use it.
        theirs[1][1].pop("customer", None)
        ours[1][1].pop("customer", None)
    assert ours == theirs
