"""Small curves of the last 15 minutes, as SVG path data. Templates draw them; style sheets colour them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.monitor.inspection.history import History, Point
from shared.console.language import current_language
from shared.platform.web.languages import LANGUAGES

SPAN = timedelta(minutes=15)
WIDTH = 120.0
HEIGHT = 32.0
_EDGE = 2.0
_GAP = timedelta(seconds=40)
"""The line is interrupted if two points are further apart than this."""


@dataclass(frozen=True, slots=True)
class Sparkline:
    line: str
    area: str
    """Line and area are SVG path data."""
    highest: float
    now: float
    width: float = WIDTH
    height: float = HEIGHT


def build_sparkline(points: Sequence[Point], now: datetime, *, is_mirrored: bool) -> Sparkline | None:
    """Return the curve, or None with fewer than two points. If mirrored, time runs from right to left."""
    shown = [point for point in points if point.at >= now - SPAN]
    if len(shown) < 2:
        return None
    top = max(point.value for point in shown)
    strokes = _strokes([_position(point, now, top, is_mirrored=is_mirrored) for point in shown], shown)
    return Sparkline(
        line=" ".join(f"M{_path(stroke)}" for stroke in strokes),
        area=" ".join(
            f"M{stroke[0][0]:g},{HEIGHT:g} L{_path(stroke)} L{stroke[-1][0]:g},{HEIGHT:g} Z"
            for stroke in strokes
        ),
        highest=top,
        now=shown[-1].value,
    )


def _position(point: Point, now: datetime, top: float, *, is_mirrored: bool) -> tuple[float, float]:
    passed = 1 - min(1.0, max(0.0, (now - point.at) / SPAN))
    x = _EDGE + (1 - passed if is_mirrored else passed) * (WIDTH - 2 * _EDGE)
    y = HEIGHT - _EDGE - (point.value / top if top > 0 else 0.0) * (HEIGHT - 2 * _EDGE)
    return round(x, 1), round(y, 1)


def _strokes(
    positions: Sequence[tuple[float, float]], points: Sequence[Point]
) -> list[list[tuple[float, float]]]:
    strokes = [[positions[0]]]
    for position, point, earlier in zip(positions[1:], points[1:], points, strict=False):
        if point.at - earlier.at > _GAP:
            strokes.append([])
        strokes[-1].append(position)
    return strokes


def _path(stroke: Sequence[tuple[float, float]]) -> str:
    return " L".join(f"{x:g},{y:g}" for x, y in stroke)


@dataclass(frozen=True, slots=True)
class SparklineRenderer:
    """Draws the history of a number in the reading direction of the page."""

    history: History
    now: datetime

    def draw(self, name: str) -> Sparkline | None:
        is_mirrored = LANGUAGES[current_language()] == "rtl"
        return build_sparkline(self.history.points(name), self.now, is_mirrored=is_mirrored)
