"""Formats numbers, days and durations in the language of the page, always with Western digits."""

from datetime import date

from babel.dates import format_date
from babel.numbers import format_decimal, format_percent
from flask_babel import gettext as _
from flask_babel import lazy_gettext

from services.dashboard.overview.health import TriedDelivery
from shared.console.delivery_labels import FAILURES, STATUSES, status_key
from shared.console.language import current_language, moment

TIME_BINS = (
    lazy_gettext("≤ 1 s"),
    lazy_gettext("≤ 10 s"),
    lazy_gettext("≤ 1 min"),
    lazy_gettext("≤ 10 min"),
    lazy_gettext("≤ 1 h"),
    lazy_gettext("> 1 h"),
)
"""The bins of health.BOUNDS_MS."""
_S, _MIN, _H = 1_000, 60_000, 3_600_000


def number(value: float) -> str:
    return format_decimal(value, "#,##0.#", locale=current_language())


def share(value: float) -> str:
    return format_percent(value, "#,##0.#%", locale=current_language())


def day(value: date) -> str:
    return format_date(value, "d MMM", locale=current_language())


def duration(ms: float) -> str:
    if ms < _S:
        return str(_("%(number)s ms", number=number(round(ms))))
    if ms < _MIN:
        return str(_("%(number)s s", number=number(ms / _S)))
    if ms < _H:
        return str(_("%(number)s min", number=number(ms / _MIN)))
    return str(_("%(number)s h", number=number(ms / _H)))


def response_label(delivery: TriedDelivery) -> str:
    """Return the last status code, or why there was no response."""
    if delivery.status_code is not None:
        return str(delivery.status_code)
    return str(FAILURES.get(delivery.failure or "", _("No answer")))


def describe_delivery(delivery: TriedDelivery) -> str:
    """Describe a delivery in one line, as the title of its square."""
    return str(
        _(
            "%(at)s: %(status)s, %(answer)s",
            at=moment(delivery.at),
            status=STATUSES[status_key(delivery.status, tries=1)],
            answer=response_label(delivery),
        )
    )
