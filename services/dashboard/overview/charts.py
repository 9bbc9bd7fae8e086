"""Where the bars and squares of the small charts stand. Pure; templates draw them, style sheets colour them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log10

WIDTH = 364.0
HEIGHT = 150.0
_CEILING = 8.0
_FLOOR = 128.0
"""Below are the names of the columns."""
_MARGIN = 36.0
"""Where the numbers of the lines stand: at the beginning, in the direction of reading."""
_GAP = 0.28
"""Of a column's width, between bars."""
_LEAST = 2.0
"""What is there is seen, however little it is."""
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
class Line:
    y: float
    value: int


@dataclass(frozen=True, slots=True)
class BarChart:
    bars: list[Bar]
    middles: list[float]
    """Of the columns."""
    lines: list[Line]
    edge: float
    """Where the bars begin, and the numbers of the lines end."""
    is_mirrored: bool
    width: float = WIDTH
    height: float = HEIGHT
    floor: float = _FLOOR


@dataclass(frozen=True, slots=True)
class Squares:
    places: list[tuple[float, float]]
    side: float
    height: float
    width: float = WIDTH


def bar_chart(kinds: Sequence[str], columns: Sequence[Sequence[int]], *, is_mirrored: bool) -> BarChart:
    """Each column is a stack, with a value of each kind. Mirrored, the first column is the rightmost."""
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
        lines=[Line(_CEILING, top), Line((_CEILING + _FLOOR) / 2, top // 2), Line(_FLOOR, 0)],
        edge=WIDTH - _MARGIN if is_mirrored else _MARGIN,
        is_mirrored=is_mirrored,
    )


def squares(count: int, *, is_mirrored: bool) -> Squares:
    """In rows, the first at the beginning of the first row."""
    step = WIDTH / SQUARES_IN_A_ROW
    side = step - _SQUARE_GAP
    places = []
    for n in range(count):
        row, column = divmod(n, SQUARES_IN_A_ROW)
        x = WIDTH - step * column - side if is_mirrored else step * column
        places.append((round(x, 1), round(step * row, 1)))
    rows = -(-count // SQUARES_IN_A_ROW)
    return Squares(places, round(side, 1), round(max(1, rows) * step - _SQUARE_GAP, 1))


def top_line(highest: int) -> int:
    """The next round and even number, so that half of it is whole."""
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
            height = max(_LEAST, value / top * (_FLOOR - _CEILING))
            foot -= height
            yield Bar(kind, round(x, 1), round(foot, 1), round(width, 1), round(height, 1))
