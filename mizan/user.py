"""`mizan user`: people who sign in to the dashboard."""

import secrets
from collections.abc import Sequence
from typing import Any

import click
from psycopg import Connection

from mizan.command_context import acting_operator, command_settings, open_transaction
from mizan.output import CommandGroup, json_option, show_table, show_values, timestamp
from shared.domain.accounts.joining import add_member, reset_member_password
from shared.domain.accounts.members import (
    Member,
    MemberNotFoundError,
    check_email,
    find_members_by_email,
    list_members,
)
from shared.domain.accounts.roles import Role
from shared.domain.applications.merchants import find_merchant, find_or_create_merchant
from shared.domain.audit_log import Action, add_audit_entry
from shared.platform.uuids import parse_uuid

SHOWN_ONCE = "The password is shown once: pass it on safely. It can be changed after signing in."
_ALL_MERCHANTS = (
    "It is the password of this email address for all its merchants, and all its sessions have ended."
)
_KEEPS_PASSWORD = "This email address already has an account; its password is unchanged."  # noqa: S105  a sentence


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
    """Create a member and print a password for them. A merchant is created if none has the name.

    You vouch that the email address is theirs. If it already has an account, the member uses that account, and no
    password is printed. If nobody has confirmed the address before, the account's password is replaced.
    """
    password = generate_password()
    with command_settings() as settings, open_transaction(settings) as connection:
        merchant_id = find_or_create_merchant(connection, parse_uuid(merchant) or merchant)
        before = find_members_by_email(connection.cursor(), check_email(email))
        is_new = add_member(connection, merchant_id, email, Role(role), password)
        if is_new:
            _record_password_change(connection, before)
        details = {"email": check_email(email), "role": role}
        add_audit_entry(
            connection, acting_operator(), Action.MEMBER_CREATED, merchant_id=merchant_id, details=details
        )
    note = (f"{SHOWN_ONCE} {_ALL_MERCHANTS}" if before else SHOWN_ONCE) if is_new else _KEEPS_PASSWORD
    values = {"email": check_email(email), "password": password if is_new else None}
    show_values(values, as_json=as_json, note=note)


@user_group.command("list")
@_merchant_option
@json_option
def list_command(merchant: str, as_json: bool) -> None:
    """List a merchant's members and invitations."""
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
    """Reset a member's password, print the new one, and end all their sessions.

    The password is that of the email address, for all its merchants. An invitation counts as accepted.
    """
    password = generate_password()
    with command_settings() as settings, open_transaction(settings) as connection:
        merchant_id = find_merchant(connection, parse_uuid(merchant) or merchant)
        wanted = check_email(email)
        member = next((one for one in list_members(connection, merchant_id) if one.email == wanted), None)
        if member is None:
            raise MemberNotFoundError
        reset_member_password(connection, member, password)
        others = find_members_by_email(connection.cursor(), member.email)
        _record_password_change(connection, [member, *(one for one in others if one.id != member.id)])
    note = f"{SHOWN_ONCE} {_ALL_MERCHANTS}"
    show_values({"email": member.email, "password": password}, as_json=as_json, note=note)


def _record_password_change(connection: Connection[Any], members: Sequence[Member]) -> None:
    """Write it into the audit log of each merchant that the account belongs to."""
    for member in members:
        add_audit_entry(
            connection,
            acting_operator(),
            Action.PASSWORD_CHANGED,
            merchant_id=member.merchant_id,
            details={"email": member.email},
        )
