"""The page that tells at a glance how an application is doing."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from uuid import UUID

from flask import render_template
from flask.typing import ResponseReturnValue

from services.dashboard.days import begin_of, day_of
from services.dashboard.dependencies import Dependencies
from services.dashboard.overview import words
from services.dashboard.overview.counting import DAYS, MOST_A_DAY, Counts, count
from services.dashboard.overview.drawn import Pen
from services.dashboard.overview.endpoint import newest_tried, times_to_delivery
from services.dashboard.overview.health import failing, share_delivered
from services.dashboard.overview.keeping import KeptBriefly
from services.dashboard.overview.standing import look
from services.dashboard.overview.times import Times, times_of
from shared.console.language import current_language
from shared.domain.applications.registry import Application
from shared.platform.web.languages import LANGUAGES

_HEALTH_OF = timedelta(days=90)
"""What is older tells nothing of an endpoint."""
_TOMORROW = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Figures:
    counts: Counts
    times: Times | None


@dataclass(frozen=True, slots=True)
class OverviewPages:
    dependencies: Dependencies
    kept: KeptBriefly[Figures] = field(default_factory=KeptBriefly, compare=False)

    def show(self, application: Application) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            standing = look(connection, application.id)
            end = standing.now + _TOMORROW
            tried = newest_tried(connection, application.id, end - _HEALTH_OF, end)
        today = day_of(standing.now)
        figures = self.kept.get((application.id, today), lambda: self._figures(application.id, today, end))
        pen = Pen(is_mirrored=LANGUAGES[current_language()] == "rtl")
        return render_template(
            "overview/show.html",
            standing=standing,
            failing=failing(tried, application.webhook_url),
            counts=figures.counts,
            payments=pen.payments(figures.counts.payments),
            deliveries=pen.deliveries(figures.counts.deliveries),
            times=figures.times,
            times_drawn=figures.times and pen.times(figures.times),
            tried=tried,
            share=share_delivered(tried),
            strip_drawn=pen.strip(tried),
            words=words,
            days=DAYS,
            most_a_day=MOST_A_DAY,
        )

    def _figures(self, application_id: UUID, today: date, end: datetime) -> Figures:
        begin = begin_of(today - timedelta(days=DAYS - 1))
        with self.dependencies.database.transaction() as connection:
            counts = count(connection, application_id, today)
            return Figures(counts, times_of(times_to_delivery(connection, application_id, begin, end)))
