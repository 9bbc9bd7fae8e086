"""`mizan user`: people who sign in to the dashboard."""

import secrets

import click

from mizan.command_context import acting_operator, command_settings, open_transaction
from mizan.output import CommandGroup, json_option, show_table, show_values, timestamp
from shared.domain.accounts.members import (
    MemberNotFoundError,
    accept_invitation,
    add_member,
    check_email,
    list_members,
    set_password,
)
from shared.domain.accounts.roles import Role
from shared.domain.accounts.sessions import NO_SESSION, end_other_sessions
from shared.domain.applications.merchants import find_merchant, find_or_create_merchant
from shared.domain.audit_log import Action, add_audit_entry
from shared.platform.uuids import parse_uuid

SHOWN_ONCE = "The password is shown once: pass it on safely. It can be changed after signing in."


def generate_password() -> str:
    return secrets.token_urlsafe(15)


_merchant_option = click.option("--merchant", required=True, help="A merchant's id or name.")
_email_option = click.option("--email", required=True)


@click.group("user", cls=CommandGroup)
def user_group() -> None:
    """Create and manage members of merchants, who sign in to the dashboard."""


@user_group.command("create")
@_email_option
@click.option("--role", required=True, type=click.Choice([role.value for role in Role]))
@_merchant_option
@json_option
def create_command(email: str, role: str, merchant: str, as_json: bool) -> None:
    """Create a member and print a password for them. A merchant with a new name is created."""
    password = generate_password()
    with command_settings() as settings, open_transaction(settings) as connection:
        merchant_id = find_or_create_merchant(connection, parse_uuid(merchant) or merchant)
        add_member(connection, merchant_id, email, Role(role), password)
        details = {"email": check_email(email), "role": role}
        add_audit_entry(
            connection, acting_operator(), Action.MEMBER_CREATED, merchant_id=merchant_id, details=details
        )
    show_values({"email": check_email(email), "password": password}, as_json=as_json, note=SHOWN_ONCE)


@user_group.command("list")
@_merchant_option
@json_option
def list_command(merchant: str, as_json: bool) -> None:
    """List a merchant's members, and who is invited."""
    with command_settings() as settings, open_transaction(settings) as connection:
        members = list_members(connection, find_merchant(connection, parse_uuid(merchant) or merchant))
    rows = [
        {
            "email": member.email,
            "role": member.role,
            "invited": timestamp(member.created_at),
            "joined": timestamp(member.joined_at),
        }
        for member in members
    ]
    show_table(rows, "users", as_json=as_json, empty="The merchant has no members.")


@user_group.command("reset-password")
@_email_option
@_merchant_option
@json_option
def reset_password_command(email: str, merchant: str, as_json: bool) -> None:
    """Give a member who forgot theirs a new password, and end all their sessions."""
    password = generate_password()
    with command_settings() as settings, open_transaction(settings) as connection:
        merchant_id = find_merchant(connection, parse_uuid(merchant) or merchant)
        wanted = check_email(email)
        member = next((one for one in list_members(connection, merchant_id) if one.email == wanted), None)
        if member is None:
            raise MemberNotFoundError
        change = set_password if member.joined_at else accept_invitation
        change(connection, member.id, password)
        end_other_sessions(connection, member.id, kept=NO_SESSION)
        details = {"email": member.email}
        add_audit_entry(
            connection, acting_operator(), Action.PASSWORD_CHANGED, merchant_id=merchant_id, details=details
        )
    show_values({"email": member.email, "password": password}, as_json=as_json, note=SHOWN_ONCE)
