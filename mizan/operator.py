"""`mizan operator`: the people who sign in to the monitor."""

import click

from mizan.command_context import acting_operator, command_settings, open_transaction
from mizan.output import CommandGroup, json_option, show_table, show_values, timestamp
from mizan.user import SHOWN_ONCE, generate_password
from shared.domain.accounts.members import check_email
from shared.domain.accounts.operators import (
    add_operator,
    get_operator,
    list_operators,
    remove_operator,
    set_operator_password,
)
from shared.domain.accounts.sessions import NO_SESSION, end_other_sessions
from shared.domain.audit_log import Action, add_audit_entry

_email_option = click.option("--email", required=True)


@click.group("operator", cls=CommandGroup)
def operator_group() -> None:
    """Create and manage operators, who sign in to the monitor."""


@operator_group.command("create")
@_email_option
@json_option
def create_command(email: str, as_json: bool) -> None:
    """Create an operator and print a password for them."""
    password = generate_password()
    with command_settings() as settings, open_transaction(settings) as connection:
        add_operator(connection, email, password)
        add_audit_entry(
            connection, acting_operator(), Action.OPERATOR_CREATED, details={"email": check_email(email)}
        )
    show_values({"email": check_email(email), "password": password}, as_json=as_json, note=SHOWN_ONCE)


@operator_group.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the operators."""
    with command_settings() as settings, open_transaction(settings) as connection:
        found = list_operators(connection)
    rows = [{"email": one.email, "created": timestamp(one.created_at)} for one in found]
    show_table(
        rows,
        "operators",
        as_json=as_json,
        empty="There are no operators yet; `mizan operator create` creates one.",
    )


@operator_group.command("remove")
@_email_option
def remove_command(email: str) -> None:
    """Remove an operator; their sessions end at once."""
    with command_settings() as settings, open_transaction(settings) as connection:
        found = get_operator(connection, email)
        remove_operator(connection, found.id)
        add_audit_entry(
            connection, acting_operator(), Action.OPERATOR_REMOVED, details={"email": found.email}
        )
    click.echo("removed")


@operator_group.command("reset-password")
@_email_option
@json_option
def reset_password_command(email: str, as_json: bool) -> None:
    """Reset an operator's password, print the new one, and end all their sessions."""
    password = generate_password()
    with command_settings() as settings, open_transaction(settings) as connection:
        found = get_operator(connection, email)
        set_operator_password(connection, found.id, password)
        end_other_sessions(connection, found.id, kept=NO_SESSION)
        add_audit_entry(
            connection, acting_operator(), Action.PASSWORD_CHANGED, details={"email": found.email}
        )
    show_values({"email": found.email, "password": password}, as_json=as_json, note=SHOWN_ONCE)
