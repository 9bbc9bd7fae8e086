"""The small charts of the overview: the positions of bars and squares, and their labels.

Templates draw them, and style sheets colour them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log10

from services.dashboard.overview import labels
from services.dashboard.overview.health import DeliveryTimes, TriedDelivery
from services.dashboard.overview.queries import DeliveryDay, PaymentDay

WIDTH = 364.0
HEIGHT = 150.0
_CEILING = 8.0
_FLOOR = 128.0
"""The baseline. The names of the columns are below it."""
_MARGIN = 36.0
"""The space for the numbers of the grid lines, on the side where reading starts."""
_GAP = 0.28
"""The gap between bars, as a share of a column's width."""
_MIN_HEIGHT = 2.0
"""The minimum height of a bar, so that small values are visible."""
SQUARES_IN_A_ROW = 25
_SQUARE_GAP = 3.0


@dataclass(frozen=True, slots=True)
class Bar:
    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class GridLine:
    y: float
    value: int


@dataclass(frozen=True, slots=True)
class BarChart:
    bars: list[Bar]
    middles: list[float]
    """One for each column."""
    lines: list[GridLine]
    edge: float
    """The x position between the numbers of the grid lines and the bars."""
    is_mirrored: bool
    width: float = WIDTH
    height: float = HEIGHT
    floor: float = _FLOOR


@dataclass(frozen=True, slots=True)
class Squares:
    positions: list[tuple[float, float]]
    side: float
    height: float
    width: float = WIDTH


def bar_chart(kinds: Sequence[str], columns: Sequence[Sequence[int]], *, is_mirrored: bool) -> BarChart:
    """Lay out a stacked bar chart. A column has one value of each kind. Mirrored, the first column is on the right."""
    top = top_line(max((sum(column) for column in columns), default=0))
    step = (WIDTH - _MARGIN) / max(1, len(columns))
    starts = [
        WIDTH - _MARGIN - step * (n + 1) if is_mirrored else _MARGIN + step * n for n in range(len(columns))
    ]
    bars = [
        bar
        for start, column in zip(starts, columns, strict=True)
        for bar in _stack(kinds, column, start + step * _GAP / 2, step * (1 - _GAP), top)
    ]
    return BarChart(
        bars=bars,
        middles=[round(start + step / 2, 1) for start in starts],
        lines=[GridLine(_CEILING, top), GridLine((_CEILING + _FLOOR) / 2, top // 2), GridLine(_FLOOR, 0)],
        edge=WIDTH - _MARGIN if is_mirrored else _MARGIN,
        is_mirrored=is_mirrored,
    )


def squares(count: int, *, is_mirrored: bool) -> Squares:
    """Lay out squares in rows, starting where reading starts."""
    step = WIDTH / SQUARES_IN_A_ROW
    side = step - _SQUARE_GAP
    positions = []
    for n in range(count):
        row, column = divmod(n, SQUARES_IN_A_ROW)
        x = WIDTH - step * column - side if is_mirrored else step * column
        positions.append((round(x, 1), round(step * row, 1)))
    rows = -(-count // SQUARES_IN_A_ROW)
    return Squares(positions, round(side, 1), round(max(1, rows) * step - _SQUARE_GAP, 1))


def top_line(highest: int) -> int:
    """Return the next round even number, so that half of it is a whole number."""
    if highest <= 2:
        return 2
    unit = int(10 ** int(log10(highest)))
    return next(
        line
        for line in (unit, 2 * unit, 4 * unit, 6 * unit, 8 * unit, 10 * unit)
        if line >= highest and line % 2 == 0
    )


def _stack(kinds: Sequence[str], column: Sequence[int], x: float, width: float, top: int) -> Iterator[Bar]:
    foot = _FLOOR
    for kind, value in zip(kinds, column, strict=True):
        if value > 0:
            height = max(_MIN_HEIGHT, value / top * (_FLOOR - _CEILING))
            foot -= height
            yield Bar(kind, round(x, 1), round(foot, 1), round(width, 1), round(height, 1))


@dataclass(frozen=True, slots=True)
class LabelledBarChart:
    chart: BarChart
    names: list[str]
    """One for each column."""
    rows: list[list[str]]
    """The same numbers as a table, for people who cannot see the chart."""


@dataclass(frozen=True, slots=True)
class LabelledSquares:
    squares: Squares
    titles: list[str]


@dataclass(frozen=True, slots=True)
class ChartBuilder:
    is_mirrored: bool
    """Whether time runs from right to left, as the page is read."""

    def payments(self, days: Sequence[PaymentDay]) -> LabelledBarChart:
        columns = [(day.paid, day.open, day.expired) for day in days]
        return self._bars(("paid", "open", "expired"), [labels.day(day.day) for day in days], columns)

    def deliveries(self, days: Sequence[DeliveryDay]) -> LabelledBarChart:
        columns = [(day.succeeded, day.pending, day.failed) for day in days]
        return self._bars(("succeeded", "pending", "failed"), [labels.day(day.day) for day in days], columns)

    def times(self, times: DeliveryTimes) -> LabelledBarChart:
        return self._bars(
            ("time",), [str(name) for name in labels.TIME_BINS], [(count,) for count in times.bins]
        )

    def strip(self, tried: Sequence[TriedDelivery]) -> LabelledSquares:
        laid_out = squares(len(tried), is_mirrored=self.is_mirrored)
        return LabelledSquares(laid_out, [labels.describe_delivery(delivery) for delivery in tried])

    def _bars(
        self, kinds: Sequence[str], names: list[str], columns: Sequence[tuple[int, ...]]
    ) -> LabelledBarChart:
        chart = bar_chart(kinds, columns, is_mirrored=self.is_mirrored)
        rows = [
            [name, *(labels.number(value) for value in column)]
            for name, column in zip(names, columns, strict=True)
        ]
        return LabelledBarChart(chart, names, rows)
