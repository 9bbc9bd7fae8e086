"""A page that is rendered once, with placeholders for the values that differ between requests.

It comes from the page's usual template, so there is no second one to keep in step. The placeholders are the only values
of a request that the template gets: nothing of a customer, a merchant or an intent is kept.
"""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from markupsafe import escape

# No template and no catalogue contains a NUL.
_MARK = re.compile(r"\0(\w+)\0")


class PlaceholderUsedError(Exception):
    """A template does more with a placeholder than to test whether there is a value and to print it.

    Not a TypeError, which Jinja would take for a missing element.
    """


class _Placeholder:
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __html__(self) -> str:
        """Jinja prints it with this, wherever it would escape a text."""
        return f"\0{self._name}\0"

    def __bool__(self) -> bool:
        return True

    def _refuse(self, *_: object) -> NoReturn:
        """Raise, because the page would be that of a placeholder, not of the value."""
        raise PlaceholderUsedError(f"the template does more with {self._name} than to print it")

    __eq__ = __ne__ = __hash__ = __len__ = __iter__ = __getitem__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __str__ = __repr__ = __format__ = _refuse
    __int__ = __float__ = __index__ = __add__ = __radd__ = __mod__ = __floordiv__ = _refuse


def placeholder(name: str) -> Any:
    """Return what stands for the value `name` in a template. In a condition it is true, as a value must be.

    The template may only print it: comparing it, computing with it or taking a part raises PlaceholderUsedError.
    """
    return _Placeholder(name)


class PrerenderedPage:
    def __init__(self, html: str) -> None:
        """`html` was rendered with placeholders."""
        parts = _MARK.split(html)
        self._parts = parts
        self._names = [(position, parts[position]) for position in range(1, len(parts), 2)]

    def fill(self, values: Mapping[str, object]) -> str:
        """Return the page with these values, escaped as the template would escape them.

        Raises KeyError if one is missing.
        """
        escaped = {name: escape(value) for name, value in values.items()}
        parts = self._parts.copy()
        for position, name in self._names:
            parts[position] = escaped[name]
        return "".join(parts)
