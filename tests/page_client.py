"""Opens pages and submits their forms without a browser, and reads the text of pages."""

import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from threading import Barrier

import requests

_TITLE = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
_TAGS = re.compile(r"<[^>]+>")


def page_title(html: str) -> str:
    found = _TITLE.search(html)
    return page_text(found[1]) if found else ""


def page_text(html: str) -> str:
    return " ".join(unescape(_TAGS.sub(" ", html)).split())


def main_html(html: str) -> str:
    """Return what is inside <main>, without the menu and the rest of the frame."""
    return html.partition("<main")[2].partition("</main>")[0]


_FORM = re.compile(r"<form\b(?P<attributes>[^>]*)>(?P<inside>.*?)</form>", re.DOTALL)
_ACTION = re.compile(r'\baction="([^"]*)"')
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class PageClient:
    def __init__(self, url: str, lang: str = "en") -> None:
        self.url = url
        self.session = requests.Session()
        self.response = self.open(f"/sign-in?lang={lang}")

    def open(self, path: str, **headers: str) -> requests.Response:
        headers = {"Accept": "text/html", **headers}
        self.response = self.session.get(f"{self.url}{path}", headers=headers, timeout=30)
        return self.response

    def sign_in(self, email: str, password: str) -> requests.Response:
        self.open("/sign-in")
        return self.post("/sign-in", email=email, password=password)

    def post(self, path: str, **fields: str) -> requests.Response:
        """Submit `fields` with the hidden fields of the page's form for `path`, as a browser does.

        If the current page has no such form, only its CSRF token is added.
        """
        self.response = self.session.post(
            f"{self.url}{path}",
            data={**self.hidden(path), **fields},
            headers={"Accept": "text/html"},
            timeout=30,
        )
        return self.response

    def hidden(self, path: str) -> dict[str, str]:
        page = self.response.text
        forms = [
            form["inside"] for form in _FORM.finditer(page) if path in _ACTION.findall(form["attributes"])
        ]
        inside = forms[0] if forms else page
        found = {name: unescape(value) for name, value in _HIDDEN.findall(inside)}
        return found if forms else {"csrf_token": found.get("csrf_token", "")}

    @property
    def title(self) -> str:
        return page_title(self.response.text)

    @property
    def text(self) -> str:
        """The visible text of the page."""
        return page_text(self.response.text)

    def close(self) -> None:
        self.session.close()

    def post_four_times_at_once(self, path: str) -> list[requests.Response]:
        """Submit the form of the open page four times at the same moment, like a double click, and follow redirects."""
        hidden, barrier = self.hidden(path), Barrier(4)

        def click(_: int) -> requests.Response:
            barrier.wait()
            return self.session.post(f"{self.url}{path}", data=hidden, timeout=30)

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(click, range(4)))
