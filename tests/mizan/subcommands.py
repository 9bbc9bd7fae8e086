"""The commands of a group."""

import click


def subcommands(group: click.Command) -> dict[str, click.Command]:
    """Return them by name; none if it is not a group."""
    if not isinstance(group, click.Group):
        return {}
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}
