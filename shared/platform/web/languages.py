"""The two languages of our pages, and how each formats amounts and times."""

from datetime import datetime
from decimal import Decimal

from babel.dates import format_datetime, get_timezone
from babel.numbers import format_currency

DEFAULT = "ar"
LANGUAGES = {"ar": "rtl", "en": "ltr"}
LIBYA = get_timezone("Africa/Tripoli")
_MINOR_UNITS = Decimal(1000)
_AMOUNT = {"ar": "#,##0.000\u00a0¤", "en": "¤¤\u00a0#,##0.000"}
_MOMENT = {"ar": "d MMMM y، HH:mm", "en": "d MMMM y, HH:mm"}


def format_amount(minor: int, currency: str, lang: str) -> str:
    return format_currency(Decimal(minor) / _MINOR_UNITS, currency, _AMOUNT[lang], locale=lang)


def format_time(at: datetime, lang: str) -> str:
    """Format in Libyan time."""
    return format_datetime(at.astimezone(LIBYA), _MOMENT[lang], locale=lang)
