"""The reference page is complete in both languages, and needs no external resources."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from services.api.openapi.markdown import render_markdown


class _Page(HTMLParser):
    """The tags, links, ids, attribute names and text of a page."""

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


def test_root_redirects_to_the_reference_page(client: FlaskClient) -> None:
    front = client.get("/")
    assert (front.status_code, front.headers["Location"]) == (302, "/docs")
    assert client.get("/", follow_redirects=True).mimetype == "text/html"


def test_reference_page_links_only_to_existing_local_addresses(page: _Page, client: FlaskClient) -> None:
    assert "/docs/en/" in page.addresses, "the documentation; tests/documentation opens it"
    for address in set(page.addresses) - {"/docs/en/"}:
        if address.startswith("#"):
            assert address[1:] in page.ids
        else:
            assert re.match(r"/(?!/)", address), address
            with client.get(address) as answer:
                assert answer.status_code == 200


def test_stylesheet_of_the_reference_page_loads_nothing(client: FlaskClient) -> None:
    with client.get("/static/reference.css") as answer:
        css = answer.get_data(as_text=True)
    assert "prefers-color-scheme: dark" in css
    assert not re.search(r"url\(|@import|https?:", css)


def test_reference_page_has_one_script_and_nothing_inline(page: _Page, answer: TestResponse) -> None:
    """The script only adds buttons that copy code."""
    assert not {"style", "iframe", "form", "object"} & set(page.tags)
    assert re.findall("<script[^>]*>[^<]*", answer.text) == [
        '<script type="module" src="/static/reference.js">'
    ]
    assert not [name for name in page.names if name == "style" or name.startswith("on")]


def test_content_security_policy_allows_only_our_stylesheet_script_and_icon(answer: TestResponse) -> None:
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert {
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    } <= set(policy)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_reference_page_has_ordered_headings_landmarks_and_a_skip_link(page: _Page) -> None:
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(level <= before + 1 for before, level in pairwise(levels))
    for landmark in ("header", "nav", "main", "footer"):
        assert page.tags.count(landmark) == 1
    assert (
        page.addresses[page.tags.count("link") + page.tags.count("script")] == "#main"
    )  # the skip link comes first
    assert len(page.ids) == len(set(page.ids))


def test_reference_page_names_every_field_response_and_event(page: _Page, client: FlaskClient) -> None:
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


def test_reference_page_names_the_limits(page: _Page) -> None:  # §8
    for limit in (
        "1,000 to 1,000,000,000",
        "1 to 255 characters",
        "at most 20 keys",
        "keys up to 40 characters",
    ):
        assert limit in page.text


def test_arabic_page_has_no_english_text(client: FlaskClient) -> None:
    """Names, codes and examples stay as they are; every sentence is translated, and the anchors are the same."""
    html = client.get("/docs?lang=ar").text
    assert '<html lang="ar" dir="rtl">' in html
    text = re.sub(r"<(code|pre|script)\b.*?</\1>|<[^>]+>", " ", html, flags=re.DOTALL)
    known = "API HMAC SHA JSON ISO UTC LYD OpenAPI Postman UUID uuid null Python Node PHP HTTPS http https English POST"
    known += " GET idempotency key method xx Z"
    words = set(re.findall(r"[A-Za-z]+", text)) - set(known.split())
    assert not words
    assert set(_Page(html).ids) == set(_Page(client.get("/docs?lang=en").text).ids)


def test_arabic_page_has_arabic_punctuation(client: FlaskClient) -> None:
    text = _Page(client.get("/docs?lang=ar").text).text
    assert not re.search(r"[\u0600-\u06ff][,;?]|[,;?]\s+[\u0600-\u06ff]", text)


@pytest.mark.parametrize(
    ("asked", "preferred", "lang"),
    [
        ("", "", "en"),
        ("", "ar-LY,en;q=0.5", "ar"),
        ("", "fr,en;q=0.5", "en"),
        ("?lang=ar", "en", "ar"),
        ("?lang=en", "ar", "en"),
        ("?lang=xx", "", "en"),
    ],
)
def test_language_is_that_of_the_address_or_the_browser(
    client: FlaskClient, asked: str, preferred: str, lang: str
) -> None:
    answer = client.get(f"/docs{asked}", headers={"Accept-Language": preferred} if preferred else {})
    assert f'<html lang="{lang}"' in answer.text
    assert "Accept-Language" in answer.headers["Vary"]
    other = "en" if lang == "ar" else "ar"
    assert f'href="/docs?lang={other}"' in answer.text


def test_curl_example_uses_the_public_url(page: _Page) -> None:
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
def test_markdown_of_the_guide_is_rendered_as_html(markdown: str, html: str) -> None:
    assert html in re.sub(r">\n<", "><", render_markdown(markdown))


def test_rendered_markdown_has_no_inline_styles_and_escapes_html() -> None:
    """Markdown aligns table cells with inline styles, which the Content-Security-Policy forbids."""
    html = render_markdown("| A |\n|:-:|\n| b |\n\n<script>alert(1)</script> <b onclick=x>c</b>")
    assert '<th scope="col">A</th>' in html
    assert "style" not in html
    assert "<script" not in html
    assert "<b" not in html
