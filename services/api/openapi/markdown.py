"""The little of Markdown that our own texts use, as HTML: paragraphs, lists, tables, code.

Written by hand because these texts are its only input: a library would be one more dependency in production.
"""

import re
from dataclasses import dataclass

from markupsafe import Markup, escape

_BLOCK = re.compile(r"\s*(?:```\w*\n(?P<code>.*?)\n```|(?P<plain>\S.*?)(?=\n{2,}|\Z))", re.DOTALL)
_ITEM = re.compile(r"^(?:\d+\.|-) ", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    slug: str
    title: str
    html: Markup


def sections(text: str) -> list[Section]:
    """What stands under each `##`; what stands before the first has no title."""
    first, *others = re.split(r"^## ", text, flags=re.MULTILINE)
    titled = [other.partition("\n") for other in others]
    return [
        Section("", "", to_html(first)),
        *(Section(slug_of(title), title, to_html(body)) for title, _, body in titled),
    ]


def to_html(text: str) -> Markup:
    return Markup("\n").join(_block(found["code"], found["plain"]) for found in _BLOCK.finditer(text.strip()))


def inline(text: str) -> Markup:
    """One line's worth: code and emphasis."""
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(" ".join(text.split()))))
    return Markup(re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html))  # noqa: S704  escaped above


def slug_of(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _block(code: str | None, plain: str) -> Markup:
    if code is not None:
        return Markup('<pre tabindex="0"><code>{}</code></pre>').format(code)
    if plain.startswith("|"):
        return _table(plain)
    if _ITEM.match(plain):
        tag = "ul" if plain.startswith("-") else "ol"
        items = Markup("").join(Markup("<li>{}</li>").format(inline(item)) for item in _ITEM.split(plain)[1:])
        return Markup(f"<{tag}>{{}}</{tag}>").format(items)  # noqa: S704  one of two constants
    return Markup("<p>{}</p>").format(inline(plain))


def _table(plain: str) -> Markup:
    head, _, *body = [line.strip("| ").split(" | ") for line in plain.splitlines()]
    titles = Markup("").join(Markup('<th scope="col">{}</th>').format(inline(cell)) for cell in head)
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(inline(cell)) for cell in row)
        )
        for row in body
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(titles, rows)
