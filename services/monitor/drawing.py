"""Draws the history of a number in the direction in which the page is read."""

from dataclasses import dataclass
from datetime import datetime

from services.monitor.sparklines import Sparkline, sparkline
from services.monitor.watch.history import History
from shared.console.language import current_language
from shared.platform.web.languages import LANGUAGES


@dataclass(frozen=True, slots=True)
class Pen:
    history: History
    now: datetime

    def draw(self, name: str) -> Sparkline | None:
        is_mirrored = LANGUAGES[current_language()] == "rtl"
        return sparkline(self.history.of(name), self.now, is_mirrored=is_mirrored)
