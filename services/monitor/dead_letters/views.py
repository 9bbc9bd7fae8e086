"""Pages about dead letters: the list, one dead letter, dismissing and replaying one, and replaying many."""

from dataclasses import dataclass
from uuid import UUID, uuid4

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.monitor.access import add_route, current_session
from services.monitor.dead_letters import labels
from services.monitor.dependencies import Dependencies
from shared.console.requests import wants_part
from shared.domain.attempts.notes import MAX_NOTE_LENGTH, MIN_NOTE_LENGTH, InvalidNoteError
from shared.domain.dead_letters.dismissals import dismiss_dead_letter
from shared.domain.dead_letters.queries import (
    DeadLetterNotFoundError,
    DeadLetterView,
    get_dead_letter,
    list_dead_letters,
)
from shared.domain.dead_letters.replays import (
    ReplayInProgressError,
    ReplayRun,
    ReplayRunNotFoundError,
    get_replay_run,
    latest_replay_run,
    start_replay_run,
    stop_replay_run,
)
from shared.domain.dead_letters.republish import count_replayable, replay_dead_letter, replayable_topics
from shared.platform.errors import RefusedError
from shared.platform.uuids import parse_uuid

_PAGE = 25
_MAX_DIGITS = 18
_SEE_OTHER = 303
_UNPROCESSABLE = 422
_DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class DeadLetterViews:
    dependencies: Dependencies

    def listing(self) -> ResponseReturnValue:
        origin, before = requested_origin(), parse_offset(request.args.get("before", ""))
        is_dismissed = request.args.get("show") == _DISMISSED
        show = _DISMISSED if is_dismissed else None
        kafka = self.dependencies.settings.kafka
        with self.dependencies.database.transaction() as connection:
            page = list_dead_letters(connection, kafka, before, _PAGE, origin, is_dismissed=is_dismissed)
            run = latest_replay_run(connection)
        older = page.next_before is not None
        return render_template(
            "dead_letters/list.html",
            dead_letters=page.dead_letters,
            origin=origin,
            origins=[(name, name) for name in replayable_topics()],
            running=run if is_running(run) else None,
            show=show,
            newest_url=url_for(".listing", origin=origin, show=show) if before is not None else None,
            older_url=url_for(".listing", origin=origin, show=show, before=page.next_before)
            if older
            else None,
        )

    def show(self, offset: int) -> ResponseReturnValue:
        return self._page(offset)

    def dismiss(self, offset: int) -> ResponseReturnValue:
        """Dismiss one dead letter, with a reason. The form carries its id, as in `replay`."""
        dead_letter_id = parse_uuid(request.form.get("dead_letter", "")) or abort(_UNPROCESSABLE)
        given = request.form.get("reason", "")
        try:
            is_new = self._dismiss(offset, dead_letter_id, given)
        except InvalidNoteError:
            error = _(
                "Write %(least)d to %(most)d characters for those who review this later.",
                least=MIN_NOTE_LENGTH,
                most=MAX_NOTE_LENGTH,
            )
            return self._page(offset, given[: 2 * MAX_NOTE_LENGTH], error), _UNPROCESSABLE
        except DeadLetterNotFoundError:
            abort(404)
        if is_new:
            flash(
                _("Dismissed. It is no longer counted, and is in the list of dismissed dead letters."), "good"
            )
        else:
            flash(_("It was already dismissed. Nothing was done."), "info")
        return redirect(url_for(".show", offset=offset), _SEE_OTHER)

    def replay(self, offset: int) -> ResponseReturnValue:
        """Replay one dead letter. The form carries its id: a recreated topic can have another one at this offset."""
        dead_letter_id = parse_uuid(request.form.get("dead_letter", "")) or abort(_UNPROCESSABLE)
        try:
            if self._replay(offset, dead_letter_id):
                flash(_("The record was written back to its topic and will be processed again."), "good")
            else:
                flash(_("It was already replayed. Nothing was done."), "info")
        except DeadLetterNotFoundError:
            abort(404)
        except RefusedError as error:
            flash(labels.explain_refusal(error), "bad")
        return redirect(url_for(".show", offset=offset), _SEE_OTHER)

    def _dismiss(self, offset: int, dead_letter_id: UUID, reason: str) -> bool:
        kafka = self.dependencies.settings.kafka
        with self.dependencies.database.transaction() as connection:
            found = get_dead_letter(connection, kafka, offset)
            if found.id != dead_letter_id:
                raise DeadLetterNotFoundError(dead_letter_id)
            return dismiss_dead_letter(connection, kafka, found, reason, current_session().actor)

    def _page(self, offset: int, reason: str = "", error: str | None = None) -> str:
        found = self._get_or_404(offset)
        return render_template(
            "dead_letters/show.html",
            dead_letter=found,
            can_be_replayed=found.topic in replayable_topics(),
            reason=reason,
            error=error,
        )

    def _replay(self, offset: int, dead_letter_id: UUID) -> bool:
        kafka = self.dependencies.settings.kafka
        with self.dependencies.database.transaction() as connection:
            found = get_dead_letter(connection, kafka, offset)
            if found.id != dead_letter_id:
                raise DeadLetterNotFoundError(dead_letter_id)
            return replay_dead_letter(connection, kafka, found, current_session().actor)

    def _get_or_404(self, offset: int) -> DeadLetterView:
        try:
            with self.dependencies.database.transaction() as connection:
                return get_dead_letter(connection, self.dependencies.settings.kafka, offset)
        except DeadLetterNotFoundError:
            abort(404)


def requested_origin() -> str | None:
    """Return the origin topic to filter by, or None for all topics."""
    wanted = request.values.get("origin", "")
    return wanted if wanted in replayable_topics() else None


def parse_offset(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else None


def is_running(run: ReplayRun | None) -> bool:
    return run is not None and run.outcome is None


@dataclass(frozen=True, slots=True)
class ReplayViews:
    dependencies: Dependencies

    def replay_form(self) -> ResponseReturnValue:
        origin = requested_origin()
        with self.dependencies.database.transaction() as connection:
            latest = latest_replay_run(connection)
            count = count_replayable(connection, self.dependencies.settings.kafka, origin).count
        return render_template(
            "dead_letters/replay_form.html",
            origin=origin,
            origins=[(name, name) for name in replayable_topics()],
            count=count,
            latest=latest,
            running=is_running(latest),
            run_id=uuid4(),
            labels=labels,
        )

    def start_replay(self) -> ResponseReturnValue:
        """Start a replay of many. The form carries the id of the run, so a second click starts nothing more."""
        run_id = parse_uuid(request.form.get("run", "")) or abort(_UNPROCESSABLE)
        wanted = request.form.get("origin", "")
        if wanted and wanted not in replayable_topics():
            abort(_UNPROCESSABLE)
        try:
            with self.dependencies.database.transaction() as connection:
                kafka = self.dependencies.settings.kafka
                start_replay_run(connection, kafka, run_id, wanted or None, current_session().actor)
        except ReplayInProgressError as error:
            flash(labels.explain_refusal(error), "bad")
            run_id = error.active_run_id
        except RefusedError as error:
            flash(labels.explain_refusal(error), "info")
            return redirect(url_for(".listing"), _SEE_OTHER)
        return redirect(url_for(".replay_progress", run=run_id), _SEE_OTHER)

    def replay_progress(self, run: UUID) -> ResponseReturnValue:
        try:
            with self.dependencies.database.transaction() as connection:
                found = get_replay_run(connection, run)
        except ReplayRunNotFoundError:
            abort(404)
        template = "dead_letters/replay_run_partial.html" if wants_part() else "dead_letters/replay_run.html"
        done = found.replayed + found.refused
        share = 1.0 if found.outcome == "done" else min(1.0, done / found.found)
        return render_template(template, run=found, share=share, labels=labels)

    def stop_replay(self, run: UUID) -> ResponseReturnValue:
        try:
            with self.dependencies.database.transaction() as connection:
                is_new = stop_replay_run(connection, run, current_session().actor)
        except ReplayRunNotFoundError:
            abort(404)
        if is_new:
            flash(_("Stopped. Records that were already replayed stay replayed."), "good")
        else:
            flash(_("It had already ended."), "info")
        return redirect(url_for(".replay_progress", run=run), _SEE_OTHER)


_POST = ("POST",)


def create_dead_letters_blueprint(dependencies: Dependencies) -> Blueprint:
    blueprint = Blueprint("dead_letters", __name__)
    views = DeadLetterViews(dependencies)
    add_route(blueprint, "/dead-letters", views.listing)
    add_route(blueprint, "/dead-letters/<int:offset>", views.show)
    add_route(blueprint, "/dead-letters/<int:offset>/replay", views.replay, _POST)
    add_route(blueprint, "/dead-letters/<int:offset>/dismiss", views.dismiss, _POST)
    replays = ReplayViews(dependencies)
    add_route(blueprint, "/dead-letters/replay-all", replays.replay_form)
    add_route(blueprint, "/dead-letters/replays", replays.start_replay, _POST)
    add_route(blueprint, "/dead-letters/replays/<uuid:run>", replays.replay_progress)
    add_route(blueprint, "/dead-letters/replays/<uuid:run>/stop", replays.stop_replay, _POST)
    return blueprint
