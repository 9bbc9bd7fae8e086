"""The overview page of an application."""

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from uuid import UUID

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from services.dashboard.dependencies import Dependencies
from services.dashboard.overview import labels
from services.dashboard.overview.charts import ChartBuilder
from services.dashboard.overview.health import DeliveryTimes, find_failing, share_delivered, summarize_times
from services.dashboard.overview.queries import (
    DAYS,
    MAX_PER_DAY,
    DailyCounts,
    count_days,
    find_setup_status,
    list_delivery_times,
    list_newest_tried,
)
from services.dashboard.overview.ttl_cache import TtlCache
from shared.console.days import local_day, start_of_day
from shared.console.guard import add_route
from shared.console.language import current_language
from shared.domain.accounts.roles import Permission
from shared.domain.applications.registry import Application
from shared.platform.web.languages import LANGUAGES

_HEALTH_PERIOD = timedelta(days=90)
"""Older deliveries say nothing about the endpoint of today."""
_TOMORROW = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class OverviewFigures:
    counts: DailyCounts
    times: DeliveryTimes | None


@dataclass(frozen=True, slots=True)
class OverviewPages:
    dependencies: Dependencies
    cache: TtlCache[OverviewFigures] = field(default_factory=TtlCache, compare=False)

    def show(self, application: Application) -> ResponseReturnValue:
        with self.dependencies.database.transaction() as connection:
            setup = find_setup_status(connection, application.id)
            end = setup.now + _TOMORROW
            tried = list_newest_tried(connection, application.id, end - _HEALTH_PERIOD, end)
        today = local_day(setup.now)
        figures = self.cache.get((application.id, today), lambda: self._figures(application.id, today, end))
        charts = ChartBuilder(is_mirrored=LANGUAGES[current_language()] == "rtl")
        return render_template(
            "overview/show.html",
            setup=setup,
            failing=find_failing(tried, application.webhook_url),
            counts=figures.counts,
            payments=charts.payments(figures.counts.payments),
            deliveries=charts.deliveries(figures.counts.deliveries),
            times=figures.times,
            times_chart=figures.times and charts.times(figures.times),
            tried=tried,
            share=share_delivered(tried),
            strip_chart=charts.strip(tried),
            labels=labels,
            days=DAYS,
            max_per_day=MAX_PER_DAY,
            api_url=self.dependencies.settings.public_urls.api,
            api_base=self.dependencies.settings.public_urls.api_base,
        )

    def _figures(self, application_id: UUID, today: date, end: datetime) -> OverviewFigures:
        begin = start_of_day(today - timedelta(days=DAYS - 1))
        with self.dependencies.database.transaction() as connection:
            counts = count_days(connection, application_id, today)
            return OverviewFigures(
                counts, summarize_times(list_delivery_times(connection, application_id, begin, end))
            )


def overview_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("overview", __name__)
    add_route(blueprint, "/applications/<application>", OverviewPages(dependencies).show, Permission.READ)
    return blueprint
