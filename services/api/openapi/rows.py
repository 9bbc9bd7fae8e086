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
        prop, nullable = _without_null(document, declared)
        yield Row(
            name=f"{prefix}{name}",
            type=_type(prop) + (" or null" if nullable else ""),
            required=name in schema.get("required", ()),
            limits=list(_limits(prop)),
            description=declared.get("description", prop.get("description", "")),
        )
        if "properties" in prop:
            yield from rows_of(document, prop, f"{prefix}{name}.")


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
        inner = prop["additionalProperties"]["type"]
        return "object of strings" if inner == "string" else f"object of {inner}s of strings"
    kind: str = prop.get("type", "string")
    return f"{kind}, {_FORMATS[prop['format']]}" if "format" in prop else kind


def _limits(prop: dict[str, Any]) -> Iterator[str]:
    if "enum" in prop:
        yield "one of " + ", ".join(f"`{value}`" for value in prop["enum"])
    if "maximum" in prop:
        yield f"{prop['minimum']:,} to {prop['maximum']:,}"
    if "maxLength" in prop:
        yield f"{prop.get('minLength', 0)} to {prop['maxLength']} characters"
    if "maxProperties" in prop:
        yield f"at most {prop['maxProperties']} keys"
        yield f"keys up to {prop['propertyNames']['maxLength']} characters"
        yield f"values up to {prop['additionalProperties']['maxLength']} characters"
