"""Replaying many dead letters: how many there are, the word that starts it, how far it is, the word that stops it."""

from dataclasses import dataclass
from uuid import UUID, uuid4

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.monitor.access import signed_in
from services.monitor.dead import words
from services.monitor.dead.letters import chosen_origin, is_under_way
from services.monitor.workshop import Workshop
from shared.console.requests import wants_part
from shared.domain.dead_letters.replays import (
    ReplayingAlreadyError,
    RunNotFoundError,
    begin_run,
    get_run,
    latest_run,
    stop_run,
)
from shared.domain.dead_letters.republish import look_for_open, origins
from shared.platform.errors import RefusedError
from shared.platform.uuids import uuid_in

_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class ReplayPages:
    workshop: Workshop

    def choose_replay(self) -> ResponseReturnValue:
        origin = chosen_origin()
        with self.workshop.database.transaction() as connection:
            latest = latest_run(connection)
            count = look_for_open(connection, self.workshop.settings.kafka, origin).count
        return render_template(
            "dead/choose_replay.html",
            origin=origin,
            origins=[(name, name) for name in origins()],
            count=count,
            latest=latest,
            under_way=is_under_way(latest),
            run_id=uuid4(),
            words=words,
        )

    def begin_replay(self) -> ResponseReturnValue:
        """What the form hides names the wish: a second click leads to what the first one began."""
        run_id = uuid_in(request.form.get("run", "")) or abort(_UNPROCESSABLE)
        wanted = request.form.get("origin", "")
        if wanted and wanted not in origins():
            abort(_UNPROCESSABLE)
        try:
            with self.workshop.database.transaction() as connection:
                kafka = self.workshop.settings.kafka
                begin_run(connection, kafka, run_id, wanted or None, signed_in().actor)
        except ReplayingAlreadyError as error:
            flash(words.why_not(error), "bad")
            run_id = error.under_way
        except RefusedError as error:
            flash(words.why_not(error), "info")
            return redirect(url_for(".letters"), _SEE_OTHER)
        return redirect(url_for(".replay_progress", run=run_id), _SEE_OTHER)

    def replay_progress(self, run: UUID) -> ResponseReturnValue:
        try:
            with self.workshop.database.transaction() as connection:
                found = get_run(connection, run)
        except RunNotFoundError:
            abort(404)
        template = "dead/run_part.html" if wants_part() else "dead/run.html"
        done = found.replayed + found.refused
        share = 1.0 if found.outcome == "done" else min(1.0, done / found.found)
        return render_template(template, run=found, share=share, words=words)

    def stop_replay(self, run: UUID) -> ResponseReturnValue:
        try:
            with self.workshop.database.transaction() as connection:
                is_new = stop_run(connection, run, signed_in().actor)
        except RunNotFoundError:
            abort(404)
        if is_new:
            flash(_("Stopped. What was replayed before stays replayed."), "good")
        else:
            flash(_("It had ended before."), "info")
        return redirect(url_for(".replay_progress", run=run), _SEE_OTHER)
