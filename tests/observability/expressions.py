"""Finds the metrics and labels in a PromQL expression."""

import re
from dataclasses import dataclass

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_MADE = re.compile(r'label_replace\(.*?,\s*"(\w+)"', re.DOTALL)
_RANGE = re.compile(r"\[[^\]]*\]")
_NAMED = re.compile(r"(?<![\w.])([a-zA-Z_:][\w:]*)\s*(?:\{([^}]*)\})?(\s*\()?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_WORDS = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan"})


@dataclass(frozen=True, slots=True)
class Named:
    metric: str
    labels: frozenset[str]
    """That it must have for the expression to mean something."""


def named_in(expression: str) -> set[Named]:
    """Return the metrics of an expression with their labels.

    Labels to group by must exist on each metric, unless label_replace creates them.
    """
    made = set(_MADE.findall(expression))
    bare = _RANGE.sub("", _STRING.sub('""', expression))
    grouped = {
        label.strip() for inside in _GROUPING.findall(bare) for label in inside.split(",") if label.strip()
    }
    found = set()
    for name, matchers, call in _NAMED.findall(_GROUPING.sub("", bare)):
        if not call and name.lower() not in _WORDS:
            found.add(Named(name, frozenset(_MATCHER.findall(matchers)) | (grouped - made)))
    return found
