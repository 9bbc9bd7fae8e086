"""Formats numbers and durations in the reader's language, always with Western digits."""

from datetime import datetime

from babel.numbers import format_decimal, format_percent
from flask import Flask
from flask_babel import gettext as _
from flask_babel import ngettext

from services.monitor.inspection.snapshots import Backlog, BoundedCount
from shared.console.language import current_language

NOTHING = "\N{EN DASH}"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def format_number(value: float) -> str:
    return format_decimal(value, "#,##0.#", locale=current_language())


def format_integer(value: float) -> str:
    return format_decimal(round(value), "#,##0", locale=current_language())


def format_share(value: float) -> str:
    return format_percent(value, "#,##0%", locale=current_language())


def format_count(value: BoundedCount | Backlog) -> str:
    shown = format_integer(value.count)
    return str(_("more than %(number)s", number=shown)) if value.has_more else shown


def format_rate(value: float | None) -> str:
    """Format a rate in records per second."""
    return NOTHING if value is None else str(_("%(number)s/s", number=format_number(value)))


def format_duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return str(
            _("%(number)s s", number=format_number(seconds) if seconds < 10 else format_integer(seconds))
        )
    if seconds < _HOUR:
        return str(_("%(number)s min", number=format_number(seconds / _MINUTE)))
    if seconds < 2 * _DAY:
        return str(_("%(number)s h", number=format_number(seconds / _HOUR)))
    days = seconds / _DAY
    return str(ngettext("%(number)s day", "%(number)s days", round(days), number=format_number(days)))


def format_time_until(at: datetime | None, now: datetime) -> str:
    """Return "in 5 min" for a future time, and an empty text for a past time or None."""
    if at is None or at <= now:
        return ""
    return str(_("in %(duration)s", duration=format_duration((at - now).total_seconds())))


def register_formatting(app: Flask) -> None:
    """Make the functions of this module available in all templates."""
    for function in (
        format_count,
        format_duration,
        format_integer,
        format_number,
        format_rate,
        format_share,
        format_time_until,
    ):
        app.add_template_global(function)
