"""`mizan dead replay` and `mizan dead dismiss`."""

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from time import sleep
from uuid import UUID, uuid4

import click

from mizan.command_context import acting_operator, command_settings, open_transaction
from mizan.dead.inspect import find_by_id_or_offset, parse_delivery_id
from shared.domain.dead_letters.dismissals import dismiss_dead_letter
from shared.domain.dead_letters.replays import (
    ReplayInProgressError,
    ReplayRun,
    get_replay_run,
    replay_batch,
    start_replay_run,
    stop_replay_run,
)
from shared.domain.dead_letters.republish import count_replayable, replay_dead_letter
from shared.domain.deliveries.resend import resend_exhausted
from shared.platform.database.pool import Database
from shared.platform.errors import RefusedError
from shared.platform.settings import Settings


@click.command("replay")
@click.argument("names", metavar="[ID]...", nargs=-1)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All dead letters that have been neither replayed nor dismissed.",
)
@click.option("--origin", metavar="TOPIC", help="With --all: only dead letters from this topic.")
@click.option("--yes", is_flag=True, help="With --all: do not ask for confirmation.")
def replay_command(names: Sequence[str], everything: bool, origin: str | None, yes: bool) -> None:
    """Republish dead letters to their topic, once each; resend deliveries. Exit code 1 if one fails."""
    if everything == bool(names):
        raise click.UsageError("Give either IDs or --all.")
    if not everything and (origin is not None or yes):
        raise click.UsageError("--origin and --yes need --all.")
    with command_settings(uses_kafka=True) as settings:
        is_done = _replay_all(settings, origin, yes) if everything else _replay_named(settings, names)
    if not is_done:
        sys.exit(1)


@click.command("dismiss")
@click.argument("names", metavar="ID...", nargs=-1, required=True)
@click.option(
    "--reason", required=True, help="Why it needs no replay; 5 to 500 characters, for the audit log."
)
def dismiss_command(names: Sequence[str], reason: str) -> None:
    """Dismiss dead letters: they leave the list, the counts and the alert. Exit code 1 if one fails."""
    with command_settings(uses_kafka=True) as settings:
        is_done = _each(names, partial(_dismiss_one, settings, reason))
    if not is_done:
        sys.exit(1)


def _dismiss_one(settings: Settings, reason: str, name: str) -> str:
    with open_transaction(settings) as connection:
        letter = find_by_id_or_offset(connection, settings.kafka, name)
        is_new = dismiss_dead_letter(connection, settings.kafka, letter, reason, acting_operator())
    return "dismissed" if is_new else "was dismissed before"


def _replay_named(settings: Settings, names: Sequence[str]) -> bool:
    return _each(names, partial(_replay_one, settings))


def _each(names: Sequence[str], act: Callable[[str], str]) -> bool:
    """Act on one after the other; a failure does not stop the rest. Return whether all succeeded."""
    refused = 0
    for name in names:
        try:
            click.echo(f"{name}: {act(name)}")
        except (RefusedError, click.ClickException) as error:
            refused += 1
            click.echo(f"Error: {name}: {error}", err=True)
    return refused == 0


def _replay_one(settings: Settings, name: str) -> str:
    delivery_id = parse_delivery_id(name)
    with open_transaction(settings) as connection:
        if delivery_id is not None:
            resend_exhausted(connection, delivery_id, uuid4(), acting_operator())
            return "resend requested; `mizan delivery show` shows the result"
        letter = find_by_id_or_offset(connection, settings.kafka, name)
        is_new = replay_dead_letter(connection, settings.kafka, letter, acting_operator())
    return f"republished to {letter.topic}" if is_new else "already replayed; nothing changed"


def _replay_all(settings: Settings, origin: str | None, yes: bool) -> bool:
    with open_transaction(settings) as connection:
        count = count_replayable(connection, settings.kafka, origin).count
    if count == 0:
        click.echo("There is nothing to replay.")
        return True
    if not yes:
        click.confirm(f"Republish {count} dead letters to their topics?", abort=True)
    try:
        with open_transaction(settings) as connection:
            run = start_replay_run(connection, settings.kafka, uuid4(), origin, acting_operator())
        is_ours = True
    except ReplayInProgressError as error:
        with open_transaction(settings) as connection:
            run = get_replay_run(connection, error.active_run_id)
        click.echo(f"{run.actor} is already replaying; this command continues that replay.", err=True)
        is_ours = False
    with closing(Database(settings.database, "operator")) as database:
        try:
            run = _finish_run(database, settings, run.id)
        except KeyboardInterrupt:
            if is_ours:
                with database.transaction() as connection:
                    stop_replay_run(connection, run.id, acting_operator())
            raise
    click.echo(
        f"{run.replayed} of {run.found} dead letters were republished, {run.refused} could not be: {run.outcome}"
    )
    return run.outcome == "done" and run.refused == 0


def _finish_run(database: Database, settings: Settings, run_id: UUID) -> ReplayRun:
    """Replay batches until the run has ended. Works without the scheduler, and beside it."""
    with database.transaction() as connection:
        run = get_replay_run(connection, run_id)
    with click.progressbar(
        length=run.found, label="replaying", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        while run.outcome is None:
            pause_s = replay_batch(database, settings.kafka)
            with database.transaction() as connection:
                run = get_replay_run(connection, run_id)
            bar.update(run.replayed + run.refused - bar.pos)
            if run.outcome is None:
                sleep(pause_s)
    return run
