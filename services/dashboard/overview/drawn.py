"""The charts of the overview: where their parts stand, and what they say in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.dashboard.overview import words
from services.dashboard.overview.charts import BarChart, Squares, bar_chart, squares
from services.dashboard.overview.counting import DayOfDeliveries, DayOfPayments
from services.dashboard.overview.health import TriedDelivery
from services.dashboard.overview.times import Times


@dataclass(frozen=True, slots=True)
class DrawnBars:
    chart: BarChart
    names: list[str]
    """Of the columns."""
    rows: list[list[str]]
    """The same as a table, for who cannot see the chart."""


@dataclass(frozen=True, slots=True)
class DrawnStrip:
    places: Squares
    titles: list[str]


@dataclass(frozen=True, slots=True)
class Pen:
    is_mirrored: bool
    """Where people read from right to left, time runs so too."""

    def payments(self, days: Sequence[DayOfPayments]) -> DrawnBars:
        columns = [(day.paid, day.open, day.expired) for day in days]
        return self._bars(("paid", "open", "expired"), [words.day(day.day) for day in days], columns)

    def deliveries(self, days: Sequence[DayOfDeliveries]) -> DrawnBars:
        columns = [(day.succeeded, day.pending, day.failed) for day in days]
        return self._bars(("succeeded", "pending", "failed"), [words.day(day.day) for day in days], columns)

    def times(self, times: Times) -> DrawnBars:
        return self._bars(("time",), [str(name) for name in words.BINS], [(count,) for count in times.bins])

    def strip(self, tried: Sequence[TriedDelivery]) -> DrawnStrip:
        places = squares(len(tried), is_mirrored=self.is_mirrored)
        return DrawnStrip(places, [words.told(delivery) for delivery in tried])

    def _bars(self, kinds: Sequence[str], names: list[str], columns: Sequence[tuple[int, ...]]) -> DrawnBars:
        chart = bar_chart(kinds, columns, is_mirrored=self.is_mirrored)
        rows = [
            [name, *(words.number(value) for value in column)]
            for name, column in zip(names, columns, strict=True)
        ]
        return DrawnBars(chart, names, rows)
