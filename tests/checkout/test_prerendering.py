"""The payment form is rendered once for each variant, and filled in: it is the page that its template would make."""

from dataclasses import replace
from itertools import product
from uuid import uuid4

import pytest
from flask import render_template
from jinja2 import Environment

from services.checkout.app import make_app
from services.checkout.pages import payment_form
from services.checkout.pages.language import other_language, page_url
from services.checkout.pages.payment_form import render_payment_form
from services.checkout.pages.prerendering import PlaceholderUsedError, PrerenderedPage, placeholder
from services.checkout.pages.view_models import (
    IntentSummary,
    MethodChoice,
    PaymentForm,
    TimeShown,
    description_start,
    format_clock,
    select_time_shown,
)
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.public_names import PublicNames, set_public_names
from shared.domain.applications.registry import NewApplication
from shared.domain.payment_methods import PaymentMethod
from tests.checkout.world import CheckoutWorld

NASTY = "<b>\"Beans\"</b> & 'co' {{ page }} %(amount)s \0amount\0 \\1"
PAGE = IntentSummary(
    mode=ApplicationMode.TEST,
    merchant="Tripoli Coffee",
    initial="T",
    description="قهوة عربية وكعك",
    description_start=None,
    amount="LYD 25.500",
    reference="7KD9",
    return_url="https://shop.example.ly/back?order=7&x=%D9%82",
    seconds_left=3599,
    time_left="59:59",
    time_shown=TimeShown.COUNTDOWN,
    expires_at="19 November 2026, 12:00",
    url="/pay/1",
    state_url="/pay/1/state",
)
CHOICES = (
    MethodChoice(PaymentMethod.CARD, "Bank card", has_fields=True),
    MethodChoice(PaymentMethod.SADAD, "Sadad", has_fields=True, prefixes=("091",), prefix_error="091 only"),
)
FORM = PaymentForm(CHOICES, PaymentMethod.CARD)


def _render(source: str, value: object) -> str:
    return Environment(autoescape=True).from_string(source).render(value=value)


@pytest.mark.parametrize(
    "source", ["{{ value }}", '<a href="{{ value }}">', "<p>{{ value }}</p>{{ value|e }}"]
)
@pytest.mark.parametrize("value", ["Coffee", NASTY, "", "قهوة"])
def test_filled_page_is_what_the_template_makes_of_the_value(source: str, value: str) -> None:
    page = PrerenderedPage(_render(source, placeholder("amount")))
    assert page.fill({"amount": value, "other": "x"}) == _render(source, value)
    assert page.fill({"amount": value}) == _render(source, value), "a page can be filled again"


@pytest.mark.parametrize(
    "source",
    [
        "{% if value == 'a' %}a{% endif %}",
        "{% if value > 5 %}a{% endif %}",
        "{% if 'a' in value %}a{% endif %}",
        "{{ value|length }}",
        "{{ value|upper }}",
        "{{ value|first }}",
        "{{ value|truncate(3) }}",
        "{{ value|urlencode }}",
        "{{ value[:1] }}",
        "{{ value[0] }}",
        "{{ value.name }}",
        "{{ value|int }}",
        "{{ value + 1 }}",
        "{{ '%s'|format(value) }}",
        "{% for each in value %}{{ each }}{% endfor %}",
    ],
)
def test_placeholder_can_only_be_printed(source: str) -> None:
    """Otherwise the page of one value would be shown for all others."""
    with pytest.raises(PlaceholderUsedError, match="the template does more with amount"):
        _render(source, placeholder("amount"))


def test_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError):
        PrerenderedPage(_render("{{ value }}", placeholder("amount"))).fill({})


@pytest.mark.parametrize("lang", ["ar", "en"])
def test_prerendered_form_is_the_template(world: CheckoutWorld, lang: str, subtests: pytest.Subtests) -> None:
    """Byte for byte, for each variant, whatever its texts are."""
    app = make_app(world.settings, world.service_database)
    pages = [
        PAGE,
        replace(
            PAGE, merchant=NASTY, initial="<", amount=NASTY, description=NASTY, return_url=NASTY, url=NASTY
        ),
        replace(
            PAGE, description=NASTY * 9, description_start=NASTY, time_shown=TimeShown.END, expires_at=NASTY
        ),
        replace(PAGE, description=None, return_url=None, seconds_left=0, time_shown=TimeShown.NONE),
        replace(PAGE, description="", return_url="", mode=ApplicationMode.LIVE),
    ]
    forms = [
        FORM,
        replace(FORM, choices=CHOICES[:1]),
        replace(FORM, chosen=PaymentMethod.SADAD, phone=NASTY, birth_year="1999"),
        replace(FORM, failure="It was declined.", leaves_redirect=True),
        replace(FORM, errors={"phone": NASTY, "method": "Choose."}),
    ]
    intent = uuid4()
    with app.test_request_context(f"/pay/{intent}", query_string={"lang": lang}):
        for page, form in product(pages, forms):
            with subtests.test(page=page, form=form):
                other = page_url("pages.show", other_language(), intent=intent)
                whole = render_template("ready.html", page=page, form=form)
                assert render_payment_form(page, form, other) == whole


def test_applications_see_only_their_own_texts(pages: CheckoutWorld) -> None:
    """Opened in turn, in both languages, their pages are of the same variant. Escaping is that of a template."""
    payment_form._prerender.cache_clear()
    other = pages.make_application(NewApplication("other", "Benghazi Books"))
    with pages.database.transaction() as connection:
        set_public_names(connection, other.id, PublicNames("<i>بنغازي</i>", "<i>Books</i> & 'co'"))
    ours = pages.make_intent(description="<b>ours</b>", return_url="https://ours.example.ly/?a=1&b=2")
    theirs = pages.make_intent(
        application_id=other.id,
        amount=7_250,
        description="<b>theirs</b>",
        return_url="https://theirs.example.ly/",
    )
    own = {
        ours: ("Tripoli Coffee", "&lt;b&gt;ours&lt;/b&gt;", "https://ours.example.ly/?a=1&amp;b=2", "25.500"),
        theirs: ("&lt;i&gt;", "&lt;b&gt;theirs&lt;/b&gt;", "https://theirs.example.ly/", "7.250"),
    }
    for _ in range(2):
        for intent, lang in product((ours, theirs), ("ar", "en")):
            html = pages.customer(intent, lang).answer.text
            assert f'<html lang="{lang}"' in html
            assert all(text in html for text in own[intent])
            assert str(intent.uuid) in html
            stranger = theirs if intent is ours else ours
            assert not any(text in html for text in own[stranger])
            assert str(stranger.uuid) not in html
    assert payment_form._prerender.cache_info().currsize == 2, "one for each language"


def test_prerendered_forms_do_not_grow_with_what_they_show(pages: CheckoutWorld) -> None:
    """Names, descriptions and amounts make no variant, and variants are limited in number."""
    payment_form._prerender.cache_clear()
    for number in range(5):
        application = pages.make_application(NewApplication(f"shop {number}", f"Merchant {number}"))
        pages.customer(
            pages.make_intent(
                application_id=application.id, amount=1_000 + number, description=f"Order {number}"
            )
        )
    kept = payment_form._prerender.cache_info()
    assert kept.currsize == 1
    assert kept.maxsize is not None


@pytest.mark.parametrize(
    ("description", "start"),
    [
        (None, None),
        ("", None),
        ("x" * 160, None),
        ("x" * 161, "x" * 109 + "…"),
        ("word " * 40, "word " * 20 + "word…"),
    ],
)
def test_long_description_is_cut_at_a_word(description: str | None, start: str | None) -> None:
    assert description_start(description) == start


@pytest.mark.parametrize(
    ("seconds", "shown", "clock"),
    [
        (0, TimeShown.NONE, "0:00"),
        (1, TimeShown.COUNTDOWN, "0:01"),
        (725, TimeShown.COUNTDOWN, "12:05"),
        (3600, TimeShown.COUNTDOWN, "60:00"),
        (3601, TimeShown.END, "60:01"),
    ],
)
def test_countdown_is_shown_in_the_last_hour(seconds: int, shown: TimeShown, clock: str) -> None:
    assert (select_time_shown(seconds), format_clock(seconds)) == (shown, clock)
