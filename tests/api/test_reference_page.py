"""The reference page: complete, readable without outside resources, and with nothing that could run."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from services.api.openapi.markdown import render_markdown


class _Page(HTMLParser):
    """What a page refers to, is made of, and says."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.names: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.names.append(name)
            if name in ("href", "src", "srcset", "action", "data", "poster"):
                self.addresses.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def answer(client: FlaskClient) -> TestResponse:
    return client.get("/docs")


@pytest.fixture
def page(answer: TestResponse) -> _Page:
    return _Page(answer.text)


def test_front_leads_to_the_page(client: FlaskClient) -> None:
    front = client.get("/")
    assert (front.status_code, front.headers["Location"]) == (302, "/docs")
    assert client.get("/", follow_redirects=True).mimetype == "text/html"


def test_page_refers_to_nothing_outside(page: _Page, client: FlaskClient) -> None:
    assert page.addresses
    for address in page.addresses:
        if address.startswith("#"):
            assert address[1:] in page.ids
        else:
            assert re.match(r"/(?!/)", address), address
            with client.get(address) as answer:
                assert answer.status_code == 200


def test_stylesheet_refers_to_nothing_at_all(client: FlaskClient) -> None:
    with client.get("/static/reference.css") as answer:
        css = answer.get_data(as_text=True)
    assert "prefers-color-scheme: dark" in css
    assert not re.search(r"url\(|@import|https?:", css)


def test_page_has_no_script_and_no_style_of_its_own(page: _Page) -> None:
    assert not {"script", "style", "iframe", "form", "object"} & set(page.tags)
    assert not [name for name in page.names if name == "style" or name.startswith("on")]


def test_browser_may_load_only_our_stylesheet_and_icon(answer: TestResponse) -> None:
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert {"style-src 'self'", "img-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_page_can_be_walked_by_headings_and_landmarks(page: _Page) -> None:
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(level <= before + 1 for before, level in pairwise(levels))
    for landmark in ("header", "nav", "main", "footer"):
        assert page.tags.count(landmark) == 1
    assert page.addresses[page.tags.count("link")] == "#main"  # the first link is the skip link
    assert len(page.ids) == len(set(page.ids))


def test_every_field_answer_and_event_appears(page: _Page, client: FlaskClient) -> None:
    document = client.get("/api/v1/openapi.json").get_json()
    words = set(re.findall(r"[\w.\-/{}]+", page.text))
    schemas = document["components"]["schemas"]
    for name in ("NewPaymentIntent", "PaymentIntent", "Delivery"):
        assert set(schemas[name]["properties"]) <= words
    assert {"customer.external_id", "data.uuid"} <= words
    assert set(schemas["PaymentIntent"]["properties"]["status"]["enum"]) <= words
    assert set(document["webhooks"]) <= words
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if "security" not in operation:
                assert path in words
                assert set(operation["responses"]) <= words


def test_limits_appear(page: _Page) -> None:  # §8
    for limit in (
        "1,000 to 1,000,000,000",
        "1 to 255 characters",
        "at most 20 keys",
        "keys up to 40 characters",
    ):
        assert limit in page.text


def test_curl_example_calls_the_public_address(page: _Page) -> None:
    assert "curl https://api.mizan.example/api/v1/payment-intents \\\n" in page.text


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("One `a < b`\nline.", "<p>One <code>a &lt; b</code> line.</p>"),
        ("**Both** <b>", "<p><strong>Both</strong> &lt;b&gt;</p>"),
        ("1. one\n   more\n2. two", "<ol><li>one more</li><li>two</li></ol>"),
        ("- one\n- two", "<ul><li>one</li><li>two</li></ul>"),
        ("a\n\n```python\nx = 1\n\n\ny = 2\n```\n\nb", "<pre tabindex=\"0\"><code>x = 1\n\n\ny = 2</code></pre>"),
        ("| A | B |\n|---|---|\n| `c` | d |", "<tr><td><code>c</code></td><td>d</td></tr>"),
    ],
)  # fmt: skip
def test_texts_of_the_guide_become_html(markdown: str, html: str) -> None:
    assert html in re.sub(r">\n<", "><", render_markdown(markdown))


def test_rendered_text_has_no_inline_style_and_no_html_of_its_own() -> None:
    """Markdown aligns table cells with a style, which the content policy forbids; HTML is escaped."""
    html = render_markdown("| A |\n|:-:|\n| b |\n\n<script>alert(1)</script> <b onclick=x>c</b>")
    assert '<th scope="col">A</th>' in html
    assert "style" not in html
    assert "<script" not in html
    assert "<b" not in html
