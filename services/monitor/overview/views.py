"""The overview page: the health of each area, the problems, and the figures. Works without database and Kafka."""

from dataclasses import dataclass
from datetime import UTC, datetime

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from services.monitor import formatting as common_words
from services.monitor.access import add_route
from services.monitor.dependencies import Dependencies
from services.monitor.inspection import history
from services.monitor.inspection.problems import Thresholds
from services.monitor.inspection.rules import answer_questions, find_troubles
from services.monitor.overview import labels
from services.monitor.sparklines import Pen
from shared.console.requests import wants_part
from shared.domain.topics import DEAD_LETTERS, WEBHOOKS_DEAD


@dataclass(frozen=True, slots=True)
class OverviewPages:
    dependencies: Dependencies

    def show(self) -> ResponseReturnValue:
        now = datetime.now(UTC)
        seen = self.dependencies.watch.seen()
        return render_template(
            "overview/show_partial.html" if wants_part() else "overview/show.html",
            now=now,
            seen=seen,
            answers=answer_questions(seen, now),
            troubles=find_troubles(seen, now),
            pen=Pen(self.dependencies.watch.history(), now),
            limits=Thresholds(),
            numbers=history,
            dead_letters=DEAD_LETTERS.name,
            exhausted=WEBHOOKS_DEAD.name,
            told=labels,
            words=common_words,
        )


def overview_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("overview", __name__)
    add_route(blueprint, "/", OverviewPages(dependencies).show)
    return blueprint
