"""The overview page: the health of each area, the problems, and the figures. Works without database and Kafka."""

from dataclasses import dataclass
from datetime import UTC, datetime

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from services.monitor.access import add_route
from services.monitor.dependencies import Dependencies
from services.monitor.inspection import history
from services.monitor.inspection.rules import Thresholds, answer_health_questions, find_problems
from services.monitor.overview import labels
from services.monitor.sparklines import SparklineRenderer
from shared.console.requests import wants_part
from shared.domain.topics import DEAD_LETTERS, WEBHOOKS_DEAD


@dataclass(frozen=True, slots=True)
class OverviewViews:
    dependencies: Dependencies

    def show(self) -> ResponseReturnValue:
        now = datetime.now(UTC)
        state = self.dependencies.inspector.state()
        return render_template(
            "overview/show_partial.html" if wants_part() else "overview/show.html",
            now=now,
            state=state,
            answers=answer_health_questions(state, now),
            problems=find_problems(state, now),
            sparklines=SparklineRenderer(self.dependencies.inspector.history(), now),
            thresholds=Thresholds(),
            history=history,
            dead_letters=DEAD_LETTERS.name,
            exhausted=WEBHOOKS_DEAD.name,
            labels=labels,
        )


def create_overview_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("overview", __name__)
    add_route(blueprint, "/", OverviewViews(dependencies).show)
    return blueprint
