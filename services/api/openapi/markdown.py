"""Renders the Markdown of our own texts as HTML for the reference page.

The page's content policy allows no inline style, and the texts need no HTML of their own: both are turned off here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape


@dataclass(frozen=True)
class Section:
    slug: str
    title: str
    html: Markup


def split_sections(text: str) -> list[Section]:
    """Return what stands under each `##`. The first section is the text before them and has no title."""
    first, *others = re.split(r"^## ", text, flags=re.MULTILINE)
    titled = [other.partition("\n") for other in others]
    return [
        Section("", "", render_markdown(first)),
        *(Section(make_slug(title), title, render_markdown(body)) for title, _, body in titled),
    ]


def render_markdown(text: str) -> Markup:
    tokens = _MARKDOWN.parse(text)
    for token in tokens:
        if token.type in ("th_open", "td_open"):  # the library aligns cells with an inline style
            token.attrs = {"scope": "col"} if token.type == "th_open" else {}
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))  # noqa: S704  HTML in the text is escaped


def render_inline(text: str) -> Markup:
    """Render code and emphasis in one line of text, without a paragraph around it."""
    return Markup(_MARKDOWN.renderInline(" ".join(text.split())))  # noqa: S704  HTML in the text is escaped


def make_slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


class _Renderer(RendererHTML):
    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002
        """Make code focusable, so that the keyboard can scroll it."""
        return f'<pre tabindex="0"><code>{escape(tokens[idx].content.removesuffix(chr(10)))}</code></pre>\n'

    def code_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """Render indented code like fenced code."""
        return self.fence(tokens, idx, options, env)

    def softbreak(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:  # noqa: ARG002
        return " "


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")
