"""Somebody at pages without a browser: opens them, fills in their forms, and follows where they lead."""

import re
from html import unescape

import requests

from tests.page_text import text_of, title_of

_FORM = re.compile(r"<form\b(?P<attributes>[^>]*)>(?P<inside>.*?)</form>", re.DOTALL)
_ACTION = re.compile(r'\baction="([^"]*)"')
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class Person:
    def __init__(self, url: str, lang: str = "en") -> None:
        self.url = url
        self.session = requests.Session()
        self.answer = self.open(f"/sign-in?lang={lang}")

    def open(self, path: str, **headers: str) -> requests.Response:
        headers = {"Accept": "text/html", **headers}
        self.answer = self.session.get(f"{self.url}{path}", headers=headers, timeout=30)
        return self.answer

    def sign_in(self, email: str, password: str) -> requests.Response:
        self.open("/sign-in")
        return self.post("/sign-in", email=email, password=password)

    def post(self, path: str, **fields: str) -> requests.Response:
        """With what the form of the page that goes there hides, as a browser would; without such a form, with the
        page's token only."""
        self.answer = self.session.post(
            f"{self.url}{path}",
            data={**self.hidden(path), **fields},
            headers={"Accept": "text/html"},
            timeout=30,
        )
        return self.answer

    def hidden(self, path: str) -> dict[str, str]:
        page = self.answer.text
        forms = [
            form["inside"] for form in _FORM.finditer(page) if path in _ACTION.findall(form["attributes"])
        ]
        inside = forms[0] if forms else page
        found = {name: unescape(value) for name, value in _HIDDEN.findall(inside)}
        return found if forms else {"csrf_token": found.get("csrf_token", "")}

    @property
    def title(self) -> str:
        return title_of(self.answer.text)

    @property
    def text(self) -> str:
        """What can be read on the page."""
        return text_of(self.answer.text)

    def close(self) -> None:
        self.session.close()
