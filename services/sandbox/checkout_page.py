"""Reads a page of the checkout: its heading, its messages and its forms. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID_TAGS = frozenset({"br", "hr", "img", "input", "link", "meta"})
_TITLE_CLASS = "title"
"""The title of an alert, which is the same for all reasons."""


@dataclass(slots=True)
class PageForm:
    action: str
    hidden: dict[str, str] = field(default_factory=dict)
    """Hidden fields, among them the CSRF token."""
    choices: dict[str, list[str]] = field(default_factory=dict)
    """The other fields by name, with the values of radio buttons."""


@dataclass(frozen=True, slots=True)
class CheckoutPage:
    heading: str
    notice: str
    """What a page without a form says."""
    alerts: Sequence[str]
    """Why the last attempt failed, or what is wrong with a field."""
    forms: Sequence[PageForm]
    mode: str | None
    """"test" or "live", as the page says. None: it does not."""

    def find_form(self, name: str) -> PageForm | None:
        """Return the form that has this field."""
        return next((form for form in self.forms if name in form.choices), None)


def parse_page(html: str) -> CheckoutPage:
    parser = _PageParser()
    parser.feed(html)
    parser.close()
    return CheckoutPage(
        heading=" ".join(_texts(parser.headings)),
        notice=" ".join(_texts(parser.notices)),
        alerts=_texts(parser.alerts),
        forms=parser.forms,
        mode=parser.mode,
    )


def _texts(collected: Sequence[Sequence[str]]) -> list[str]:
    joined = (" ".join(" ".join(pieces).split()) for pieces in collected)
    return [text for text in joined if text]


@dataclass(slots=True)
class _OpenElement:
    tag: str
    is_skipped: bool
    pieces: list[str] | None
    """Where its text is collected."""


class _PageParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.headings: list[list[str]] = []
        self.notices: list[list[str]] = []
        self.alerts: list[list[str]] = []
        self.forms: list[PageForm] = []
        self.mode: str | None = None
        self._open: list[_OpenElement] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "body":
            self.mode = attributes.get("data-mode")
        elif tag == "form":
            self.forms.append(PageForm(attributes.get("action", "")))
        elif tag == "input" and self.forms:
            _add_field(self.forms[-1], attributes)
        if tag not in _VOID_TAGS:
            is_skipped = "hidden" in attributes or _TITLE_CLASS in attributes.get("class", "").split()
            self._open.append(_OpenElement(tag, is_skipped, self._collector(tag, attributes)))

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """An element without content, such as a path of an icon."""

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any(element.is_skipped for element in self._open):
            return
        for element in self._open:
            if element.pieces is not None:
                element.pieces.append(data)

    def _collector(self, tag: str, attributes: Mapping[str, str]) -> list[str] | None:
        role = attributes.get("role")
        if tag != "h1" and role not in ("alert", "status"):
            return None
        pieces: list[str] = []
        (self.headings if tag == "h1" else self.alerts if role == "alert" else self.notices).append(pieces)
        return pieces


def _add_field(form: PageForm, attributes: Mapping[str, str]) -> None:
    name, value = attributes.get("name", ""), attributes.get("value", "")
    if attributes.get("type") == "hidden":
        form.hidden[name] = value
    elif attributes.get("type") == "radio":
        form.choices.setdefault(name, []).append(value)
    else:
        form.choices.setdefault(name, [])
