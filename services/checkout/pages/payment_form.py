"""Renders the payment form: prerendered, because customers open it most, or as a whole if a field is invalid."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from flask import render_template
from flask_wtf.csrf import generate_csrf

from services.checkout.pages.language import current_language
from services.checkout.pages.prerendering import PrerenderedPage, placeholder
from services.checkout.pages.view_models import IntentSummary, MethodChoice, PaymentForm, TimeShown
from shared.domain.applications.modes import ApplicationMode
from shared.domain.payment_methods import PaymentMethod

_MAX_VARIANTS = 256
"""Each takes 10 to 20 KB of memory."""
_TEMPLATE = "ready.html"
_SUMMARY_VALUES = [each.name for each in fields(IntentSummary) if each.name not in ("mode", "time_shown")]
_ENTERED_VALUES = ["phone", "birth_year"]


@dataclass(frozen=True, slots=True)
class _Variant:
    """What decides how the form looks, all of it from our own lists: nothing of a merchant, an intent or a customer."""

    lang: str
    mode: ApplicationMode
    time_shown: TimeShown
    choices: tuple[MethodChoice, ...]
    chosen: PaymentMethod
    failure: str | None
    leaves_redirect: bool
    present: tuple[str, ...]
    """The names of the values that are not empty."""


def render_payment_form(page: IntentSummary, form: PaymentForm, other_language_url: str) -> str:
    if form.errors:
        return render_template(_TEMPLATE, page=page, form=form)
    values = dict(_values(page, form))
    values["other_language_url"] = other_language_url
    values["csrf_token"] = generate_csrf()
    variant = _Variant(
        current_language(),
        page.mode,
        page.time_shown,
        tuple(form.choices),
        form.chosen,
        form.failure,
        form.leaves_redirect,
        tuple(name for name, value in values.items() if value),
    )
    return _prerender(variant).fill(values)


def _values(page: IntentSummary, form: PaymentForm) -> Iterator[tuple[str, object]]:
    """Yield the names and values of all that can be any text."""
    for name in _SUMMARY_VALUES:
        yield name, getattr(page, name)
    for name in _ENTERED_VALUES:
        yield name, getattr(form, name)


@lru_cache(maxsize=_MAX_VARIANTS)
def _prerender(variant: _Variant) -> PrerenderedPage:
    """Render the template in the language of the request, which is that of the variant."""
    placeholders = {name: placeholder(name) for name in variant.present}
    summary: dict[str, Any] = {name: placeholders.get(name, "") for name in _SUMMARY_VALUES}
    entered: dict[str, Any] = {name: placeholders.get(name, "") for name in _ENTERED_VALUES}
    html = render_template(
        _TEMPLATE,
        page=IntentSummary(mode=variant.mode, time_shown=variant.time_shown, **summary),
        form=PaymentForm(
            variant.choices,
            variant.chosen,
            failure=variant.failure,
            leaves_redirect=variant.leaves_redirect,
            **entered,
        ),
        other_language_url=placeholders["other_language_url"],
        csrf_token=lambda: placeholders["csrf_token"],
    )
    return PrerenderedPage(html)
