"""Numbers and durations as the reader's language writes them, always with Western digits."""

from datetime import datetime

from babel.numbers import format_decimal, format_percent
from flask_babel import gettext as _
from flask_babel import ngettext

from services.monitor.inspection.snapshots import Counted, Waiting
from shared.console.language import current_language

NOTHING = "\N{EN DASH}"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def number(value: float) -> str:
    return format_decimal(value, "#,##0.#", locale=current_language())


def whole(value: float) -> str:
    return format_decimal(round(value), "#,##0", locale=current_language())


def share(value: float) -> str:
    return format_percent(value, "#,##0%", locale=current_language())


def counted(value: Counted | Waiting) -> str:
    shown = whole(value.count)
    return str(_("more than %(number)s", number=shown)) if value.is_more else shown


def rate(value: float | None) -> str:
    """Records a second."""
    return NOTHING if value is None else str(_("%(number)s/s", number=number(value)))


def duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return str(_("%(number)s s", number=number(seconds) if seconds < 10 else whole(seconds)))
    if seconds < _HOUR:
        return str(_("%(number)s min", number=number(seconds / _MINUTE)))
    if seconds < 2 * _DAY:
        return str(_("%(number)s h", number=number(seconds / _HOUR)))
    days = seconds / _DAY
    return str(ngettext("%(number)s day", "%(number)s days", round(days), number=number(days)))


def until(at: datetime | None, now: datetime) -> str:
    """How long until then; nothing where that is over, or there is none."""
    if at is None or at <= now:
        return ""
    return str(_("in %(duration)s", duration=duration((at - now).total_seconds())))
