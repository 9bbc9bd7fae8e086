"""Dead letters: the list, one of them, and its way back to where its record came from."""

from dataclasses import dataclass
from uuid import UUID

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext as _

from services.monitor.access import signed_in
from services.monitor.dead.words import why_not
from services.monitor.workshop import Workshop
from shared.domain.dead_letters.queries import Letter, LetterNotFoundError, get_letter, list_letters
from shared.domain.dead_letters.replays import Run, latest_run
from shared.domain.dead_letters.republish import origins, replay
from shared.platform.errors import RefusedError
from shared.platform.uuids import uuid_in

_PAGE = 25
_MOST_DIGITS = 18
_SEE_OTHER = 303
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class LetterPages:
    workshop: Workshop

    def letters(self) -> ResponseReturnValue:
        origin, before = chosen_origin(), offset_in(request.args.get("before", ""))
        with self.workshop.database.transaction() as connection:
            page = list_letters(connection, self.workshop.settings.kafka, before, _PAGE, origin)
            run = latest_run(connection)
        older = page.next_before is not None
        return render_template(
            "dead/letters.html",
            letters=page.letters,
            origin=origin,
            origins=[(name, name) for name in origins()],
            under_way=run if is_under_way(run) else None,
            newest_url=url_for(".letters", origin=origin) if before is not None else None,
            older_url=url_for(".letters", origin=origin, before=page.next_before) if older else None,
        )

    def letter(self, offset: int) -> ResponseReturnValue:
        found = self._found(offset)
        return render_template("dead/letter.html", letter=found, can_go_back=found.topic in origins())

    def replay_letter(self, offset: int) -> ResponseReturnValue:
        """The form names the letter that it showed: another may lie there by now, where the topic was made anew."""
        letter_id = uuid_in(request.form.get("letter", "")) or abort(_UNPROCESSABLE)
        try:
            if self._replay(offset, letter_id):
                flash(_("The record is back where it came from, and is processed again."), "good")
            else:
                flash(_("It has been replayed before. Nothing was done."), "info")
        except LetterNotFoundError:
            abort(404)
        except RefusedError as error:
            flash(why_not(error), "bad")
        return redirect(url_for(".letter", offset=offset), _SEE_OTHER)

    def _replay(self, offset: int, letter_id: UUID) -> bool:
        kafka = self.workshop.settings.kafka
        with self.workshop.database.transaction() as connection:
            found = get_letter(connection, kafka, offset)
            if found.id != letter_id:
                raise LetterNotFoundError(letter_id)
            return replay(connection, kafka, found, signed_in().actor)

    def _found(self, offset: int) -> Letter:
        try:
            with self.workshop.database.transaction() as connection:
                return get_letter(connection, self.workshop.settings.kafka, offset)
        except LetterNotFoundError:
            abort(404)


def chosen_origin() -> str | None:
    """A topic whose letters are wanted; None: all."""
    wanted = request.values.get("origin", "")
    return wanted if wanted in origins() else None


def offset_in(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def is_under_way(run: Run | None) -> bool:
    return run is not None and run.outcome is None
