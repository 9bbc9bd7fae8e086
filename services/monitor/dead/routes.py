"""The routes of this room."""

from flask import Blueprint

from services.monitor.access import add_route
from services.monitor.dead.exhausted import ExhaustedPages
from services.monitor.dead.letters import LetterPages
from services.monitor.dead.replaying import ReplayPages
from services.monitor.dead.resending import ResendPages
from services.monitor.workshop import Workshop

_POST = ("POST",)


def dead_blueprint(workshop: Workshop) -> Blueprint:
    blueprint = Blueprint("dead", __name__)
    letters = LetterPages(workshop)
    add_route(blueprint, "/dead-letters", letters.letters)
    add_route(blueprint, "/dead-letters/<int:offset>", letters.letter)
    add_route(blueprint, "/dead-letters/<int:offset>/replay", letters.replay_letter, _POST)
    replaying = ReplayPages(workshop)
    add_route(blueprint, "/dead-letters/replay-all", replaying.choose_replay)
    add_route(blueprint, "/dead-letters/replays", replaying.begin_replay, _POST)
    add_route(blueprint, "/dead-letters/replays/<uuid:run>", replaying.replay_progress)
    add_route(blueprint, "/dead-letters/replays/<uuid:run>/stop", replaying.stop_replay, _POST)
    exhausted = ExhaustedPages(workshop)
    add_route(blueprint, "/exhausted", exhausted.exhausted)
    add_route(blueprint, "/exhausted/<uuid:delivery>", exhausted.delivery)
    add_route(blueprint, "/exhausted/<uuid:delivery>/resend", exhausted.resend, _POST)
    resending = ResendPages(workshop)
    add_route(blueprint, "/exhausted/resend-all", resending.choose_resend)
    add_route(blueprint, "/exhausted/resends", resending.resends)
    add_route(blueprint, "/exhausted/resends", resending.begin_resend, _POST)
    add_route(blueprint, "/exhausted/resends/<uuid:resend>", resending.resend_progress)
    add_route(blueprint, "/exhausted/resends/<uuid:resend>/stop", resending.stop_resend, _POST)
    return blueprint
