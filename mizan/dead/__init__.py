"""`mizan dead`: dead letters, and deliveries that exhausted their retries."""

import click

from mizan.dead.inspect import list_command, show_command
from mizan.dead.replay import dismiss_command, replay_command
from mizan.output import CommandGroup


@click.group("dead", cls=CommandGroup)
def dead_group() -> None:
    """List, show, replay and dismiss dead letters and exhausted deliveries. ID is a dead letter's id or offset, or a
    delivery's id, as `mizan dead list` shows them."""


dead_group.add_command(list_command)
dead_group.add_command(show_command)
dead_group.add_command(replay_command)
dead_group.add_command(dismiss_command)
