"""The shop's texts in both languages, and its links into Mizan's dashboard."""

import json
import re
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

import pytest

from examples.shop.app import create_shop
from examples.shop.texts import _PRODUCTS, _TEXTS, format_time, translate
from tests.shop.conftest import ShopInTest

APPLICATION = "0199f3c2-0000-7000-8000-000000000001"
DASHBOARD = "https://dashboard.example"


def _open(shop: ShopInTest, path: str) -> str:
    settings = replace(shop.settings, dashboard_url=DASHBOARD)
    response = create_shop(settings).app.test_client().get(path, base_url="http://127.0.0.1:8008")
    assert response.status_code == 200
    return response.text


def _name_application(shop: ShopInTest, application: object) -> None:
    path = shop.settings.credentials_file
    path.write_text(json.dumps({**json.loads(path.read_text()), "application_id": application}))


def test_links_lead_to_the_very_payment_and_delivery(shop: ShopInTest) -> None:
    _name_application(shop, APPLICATION)
    order_page = shop.buy()
    intent = shop.mizan.only_intent()
    intent["status"] = "succeeded"
    delivery = str(uuid4())
    event = {"id": delivery, "event": "payment_intent.succeeded", "data": {"uuid": intent["uuid"]}}
    assert shop.send(event).status_code == 200
    shop.work()
    page = _open(shop, order_page)
    assert f'href="{DASHBOARD}/applications/{APPLICATION}/payments/{intent["uuid"]}"' in page
    assert f'href="{DASHBOARD}/applications/{APPLICATION}/deliveries/{delivery}"' in page
    admin = _open(shop, "/admin")
    assert f'href="{DASHBOARD}/applications/{APPLICATION}/deliveries/{delivery}"' in admin
    assert f'href="{DASHBOARD}/applications/{APPLICATION}/deliveries"' in admin


@pytest.mark.parametrize("application", [None, "", 7, "../people", "javascript:alert(1)"])
def test_without_the_applications_id_the_link_leads_to_the_start_page(
    shop: ShopInTest, application: object
) -> None:
    _name_application(shop, application)
    assert f'href="{DASHBOARD}"' in _open(shop, "/admin")


def test_setting_the_switch_says_what_is_set(shop: ShopInTest) -> None:
    shop.shop.app.config["WTF_CSRF_ENABLED"] = False
    client = shop.shop.app.test_client()
    at = {"base_url": "http://127.0.0.1:8008"}
    client.post("/admin/switch", data={"behaviour": "fail"}, **at)
    assert "The response to webhooks is set: Fails with 500." in client.get("/admin?lang=en", **at).text


def test_arabic_order_shows_the_quantity_in_arabic_reading_order(shop: ShopInTest) -> None:
    page = _open(shop, f"{shop.buy()}?lang=ar")
    assert re.search(r'<bdi dir="rtl">× \d</bdi>', page)


def test_times_have_the_form_of_mizans_pages() -> None:
    at = datetime(2026, 11, 7, 9, 5)  # noqa: DTZ001
    assert format_time(at, "en") == "7 Nov 2026, 09:05:00"
    assert format_time(at, "ar") == "7 نوفمبر 2026، 09:05:00"


def test_arabic_texts_have_arabic_punctuation_and_isolated_code() -> None:
    arabic = [one[0] for one in _TEXTS.values()] + [text for one in _PRODUCTS.values() for text in one[::2]]
    for text in arabic:
        assert not re.search(r"[\u0600-\u06ff][,;?]|[,;?]\s+[\u0600-\u06ff]", text), text
        assert not re.search(r"(?<!\u2066)\b[a-z]+_", text), text
    assert "\u2066whsec_\u2069" in translate("secret_is_wrong", "ar")
