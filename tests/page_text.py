"""What can be read on a page, without a browser."""

import re
from html import unescape

_TITLE = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
_TAGS = re.compile(r"<[^>]+>")


def title_of(html: str) -> str:
    found = _TITLE.search(html)
    return text_of(found[1]) if found else ""


def text_of(html: str) -> str:
    return " ".join(unescape(_TAGS.sub(" ", html)).split())


def main_of(html: str) -> str:
    """What stands in its main part, without the menu and all else that is around every page."""
    return html.partition("<main")[2].partition("</main>")[0]
