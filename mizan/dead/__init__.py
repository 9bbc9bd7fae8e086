"""`mizan dead`: records that nobody could process, and deliveries that used up their tries."""

import click

from mizan.dead.inspect import list_command, show_command
from mizan.dead.replay import replay_command


@click.group("dead")
def dead_group() -> None:
    """See and replay what ended badly. ID is a dead letter's id or its offset, or a delivery's id, as
    `mizan dead list` shows them."""


dead_group.add_command(list_command)
dead_group.add_command(show_command)
dead_group.add_command(replay_command)
