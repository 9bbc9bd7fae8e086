"""Security of the page: headers, form tokens, cookies and hostile input."""

import re
from dataclasses import replace
from uuid import uuid4

import pytest
import requests
from cryptography.fernet import Fernet

from services.checkout.app import make_app
from shared.platform.settings import PublicUrls
from tests.checkout.test_payments import PAID
from tests.checkout.world import RETURN_URL, CheckoutWorld

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def test_security_headers_of_every_response(pages: CheckoutWorld) -> None:
    intent = pages.make_intent()
    page = pages.page(intent)
    answers = [
        requests.get(page, timeout=10),
        requests.get(f"{page}/state", timeout=10),
        requests.get(f"{pages.url}/pay/{uuid4()}", timeout=10),
        requests.post(page, data={"method": "card"}, timeout=10),
        requests.post(page, data=b"x" * 20_000, timeout=10),
        requests.put(page, timeout=10),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 400, 413, 405]
    for answer in answers:
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Strict-Transport-Security" not in answer.headers
        assert "Server" not in answer.headers or "Werkzeug" in answer.headers["Server"]


def test_page_has_no_inline_scripts_or_styles(pages: CheckoutWorld) -> None:
    """The Content-Security-Policy forbids them."""
    html = pages.customer(pages.make_intent()).answer.text
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", html)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", html))


def test_https_has_hsts_and_a_secure_cookie(world: CheckoutWorld) -> None:
    urls = PublicUrls(api="https://api.example.ly", checkout="https://pay.example.ly")
    app = make_app(replace(world.settings, public_urls=urls), world.service_database)
    answer = app.test_client().get(f"/pay/{world.make_intent().uuid}", base_url="https://pay.example.ly")
    assert answer.headers["Strict-Transport-Security"].startswith("max-age=31536000")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-mizan-checkout=")
    for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert part in cookie
    assert "Domain" not in cookie


def test_cookie_without_https_is_http_only(pages: CheckoutWorld) -> None:
    cookie = pages.customer(pages.make_intent()).answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


@pytest.mark.parametrize("path", ["", "/code", "/code/again"])
def test_every_form_needs_its_csrf_token(pages: CheckoutWorld, path: str) -> None:
    """Without a token, or with that of another session, nothing happens."""
    intent = pages.make_intent()
    customer, stranger = pages.customer(intent), pages.customer(pages.make_intent())
    token = re.search(r'name="csrf_token" value="([^"]+)"', stranger.answer.text)
    assert token is not None
    for fields in ({"csrf_token": ""}, {"csrf_token": token[1]}, {"csrf_token": "x"}):
        answer = customer.post(
            path,
            method="card",
            card_number="4242424242424242",
            expiry="12/34",
            security_code="123",
            code="1",
            **fields,
        )
        assert answer.status_code == 400
        assert "What you entered was not sent." in customer.text
        customer.open()
    assert pages.attempts(intent) == []
    customer.pay_by_card("4242424242424242")
    assert customer.title == PAID


def test_page_shows_no_data_of_the_merchant(pages: CheckoutWorld) -> None:
    intent = pages.make_intent(
        customer_external_id="customer-77",
        metadata={"secret": "of-the-merchant"},
        merchant_reference="order-99",
    )
    html = pages.customer(intent).answer.text
    for text in ("customer-77", "of-the-merchant", "order-99", str(intent.application_id)):
        assert text not in html
    assert requests.get(f"{pages.page(intent)}/state", timeout=10).json() == {
        "state": "requires_payment_method"
    }


def test_description_of_a_merchant_is_escaped(pages: CheckoutWorld) -> None:
    description = "<script>alert(1)</script> & \"quotes\" 'too'"
    html = pages.customer(pages.make_intent(description=description)).answer.text
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_return_url_is_used_exactly_as_given(pages: CheckoutWorld) -> None:
    """§4.3: nothing is added, and no parameter of the page changes it."""
    intent = pages.make_intent()
    customer = pages.customer(intent)
    customer.open("lang=en&return_url=https://evil.example&next=//evil.example")
    assert "evil.example" not in customer.answer.text
    customer.pay_by_card("4242424242424242")
    assert f'href="{RETURN_URL.replace("&", "&amp;")}"' in customer.answer.text


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"method": "cash"},
        {"method": "card", "card_number": "\x00" * 50},
        {"method": "card", "card_number": "4242424242424242\ud800", "expiry": "12/34"},
        {"method": "sadad", "phone": "'; drop table payment_intents --"},
        {"method": "card", "card_number": "4242424242424242", "expiry": "1" * 5000 + "/30"},
        {"method": "card", "card_number": "9" * 5000, "expiry": "9" * 5000, "security_code": "9" * 5000},
    ],
)
def test_hostile_fields_are_422(pages: CheckoutWorld, fields: dict[str, str]) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent)
    encoded = {name: value.encode("utf-8", "surrogatepass") for name, value in fields.items()}
    answer = customer.post("", **encoded)  # type: ignore[arg-type]
    assert answer.status_code == 422
    assert pages.attempts(intent) == []
    assert "9999999" not in answer.text


def test_disabled_method_cannot_be_used(world: CheckoutWorld) -> None:
    with world.database.transaction() as connection:
        connection.execute("delete from application_methods where method = 'sadad'")
    with world.serve():
        intent = world.make_intent()
        customer = world.customer(intent)
        assert "Sadad" not in customer.text
        assert customer.pay_by_wallet("sadad", "0913632323").status_code == 422
        assert world.attempts(intent) == []


def test_checkout_without_any_method_links_back_to_the_merchant(world: CheckoutWorld) -> None:
    with world.database.transaction() as connection:
        connection.execute("delete from application_methods")
    with world.serve():
        customer = world.customer(world.make_intent())
        assert "<form" not in customer.answer.text
        assert "<button" not in customer.answer.text
        assert RETURN_URL.replace("&", "&amp;") in customer.answer.text


def test_unavailable_database_shows_an_error_page(world: CheckoutWorld) -> None:
    """It is 503, and asks customers not to pay again."""
    broken = replace(world.settings.database, url="postgresql://nobody@127.0.0.1:1/nothing")
    database = type(world.database)(broken, "checkout")
    app = make_app(world.settings, database)
    answer = app.test_client().get(f"/pay/{uuid4()}?lang=en")
    assert answer.status_code == 503
    assert "do not pay again" in answer.text
    database.close()


def test_forms_survive_the_rotation_of_secret_keys(world: CheckoutWorld) -> None:
    """A form made with the old key is accepted after a new key was put before it."""
    (old,) = world.settings.secret_keys
    new = Fernet.generate_key().decode()
    intent = world.make_intent()
    with world.serve():
        customer = world.customer(intent)
    world.settings = replace(world.settings, secret_keys=(new, old))
    with world.serve():
        customer.pay_by_card("4242424242424242")
        assert customer.title == PAID
