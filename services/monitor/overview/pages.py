"""The first page: three answers, what is wrong, and the figures. It needs neither database nor Kafka."""

from dataclasses import dataclass
from datetime import UTC, datetime

from flask import render_template
from flask.typing import ResponseReturnValue

from services.monitor import words as common_words
from services.monitor.drawing import Pen
from services.monitor.overview import words
from services.monitor.watch import numbers
from services.monitor.watch.judging import answer_questions, find_troubles
from services.monitor.watch.thresholds import Thresholds
from services.monitor.workshop import Workshop
from shared.console.requests import wants_part
from shared.domain.topics import DEAD_LETTERS, WEBHOOKS_DEAD


@dataclass(frozen=True, slots=True)
class OverviewPages:
    workshop: Workshop

    def show(self) -> ResponseReturnValue:
        now = datetime.now(UTC)
        seen = self.workshop.watch.seen()
        return render_template(
            "overview/part.html" if wants_part() else "overview/show.html",
            now=now,
            seen=seen,
            answers=answer_questions(seen, now),
            troubles=find_troubles(seen, now),
            pen=Pen(self.workshop.watch.history(), now),
            limits=Thresholds(),
            numbers=numbers,
            dead_letters=DEAD_LETTERS.name,
            exhausted=WEBHOOKS_DEAD.name,
            told=words,
            words=common_words,
        )
