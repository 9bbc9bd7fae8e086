"""A customer without a browser, who opens the page, submits its forms, and follows redirects."""

import re

import requests

from tests.page_client import page_text, page_title

_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class Customer:
    def __init__(self, url: str) -> None:
        self.url, _, self._query = url.partition("?")
        self._session = requests.Session()
        self.answer = self.open()

    def open(self, query: str | None = None) -> requests.Response:
        query = self._query if query is None else query
        self.answer = self._session.get(f"{self.url}?{query}", timeout=30)
        return self.answer

    def pay_by_card(self, number: str, **changes: str) -> requests.Response:
        card = {"method": "card", "card_number": number, "expiry": "12/34", "security_code": "737"}
        return self.post("", **{**card, **changes})

    def pay_by_wallet(self, method: str, phone: str, birth_year: str = "1999") -> requests.Response:
        return self.post("", method=method, phone=phone, birth_year=birth_year)

    def enter_code(self, code: str) -> requests.Response:
        return self.post("/code", code=code)

    def resend_code(self) -> requests.Response:
        return self.post("/code/again")

    def post(self, path: str, **fields: str) -> requests.Response:
        """Post the fields together with the hidden fields of the form, as a browser would."""
        hidden = dict(_HIDDEN.findall(self.answer.text))
        url = f"{self.url}{path}" + (f"?{self._query}" if self._query else "")
        self.answer = self._session.post(url, data={**hidden, **fields}, timeout=30)
        return self.answer

    @property
    def title(self) -> str:
        return page_title(self.answer.text)

    @property
    def text(self) -> str:
        """The visible text of the page."""
        return page_text(self.answer.text)

    def close(self) -> None:
        self._session.close()
