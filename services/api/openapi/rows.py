"""Flattens a schema of the document into rows of a table: a name, a type, limits, a description."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from services.api.openapi.document import Document

_FORMATS = {"uuid": "UUID", "uri": "URL", "date-time": "ISO 8601 date-time"}


@dataclass(frozen=True)
class Row:
    name: str
    type: str
    required: bool
    limits: list[str]
    description: str


def rows_of(document: Document, schema: dict[str, Any], prefix: str = "") -> Iterator[Row]:
    """One row a property; those of an object inside come right after it, by dotted name."""
    schema = resolved(document, schema)
    for name, declared in schema["properties"].items():
        yield row_of(document, f"{prefix}{name}", declared, required=name in schema.get("required", ()))
        prop, _ = _without_null(document, declared)
        if "properties" in prop:
            yield from rows_of(document, prop, f"{prefix}{name}.")


def row_of(document: Document, name: str, declared: dict[str, Any], *, required: bool) -> Row:
    prop, nullable = _without_null(document, declared)
    return Row(
        name=name,
        type=_type(prop) + (" or null" if nullable else ""),
        required=required,
        limits=list(_limits(prop)),
        description=declared["description"],
    )


def resolved(document: Document, node: dict[str, Any]) -> dict[str, Any]:
    """What `node` refers to, if it does."""
    if "$ref" not in node:
        return node
    found: Any = document
    for step in node["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return {**found, **{name: value for name, value in node.items() if name != "$ref"}}


def _without_null(document: Document, declared: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """A schema that may be null is written as a choice of two, or as a list of two types."""
    if "anyOf" in declared:
        return resolved(document, declared["anyOf"][0]), True
    if isinstance(declared.get("type"), list):
        return {**declared, "type": declared["type"][0]}, True
    return resolved(document, declared), False


def _type(prop: dict[str, Any]) -> str:
    if "additionalProperties" in prop:
        return f"object of {prop['additionalProperties']['type']}s"
    kind: str = prop["type"]
    return f"{kind}, {_FORMATS[prop['format']]}" if "format" in prop else kind


def _limits(prop: dict[str, Any]) -> Iterator[str]:
    if "enum" in prop:
        only, values = len(prop["enum"]) == 1, ", ".join(f"`{value}`" for value in prop["enum"])
        yield f"only {values}" if only else f"one of {values}"
    if "maximum" in prop:
        yield f"{prop['minimum']:,} to {prop['maximum']:,}"
    if "maxLength" in prop:
        yield f"{prop.get('minLength', 0)} to {prop['maxLength']} characters"
    if "maxProperties" in prop:
        yield f"at most {prop['maxProperties']} keys"
        yield f"keys up to {prop['propertyNames']['maxLength']} characters"
        yield f"values up to {prop['additionalProperties']['maxLength']} characters"
