"""`mizan demo` and `mizan remove-demo`: a merchant, an application and two accounts to try Mizan with.

Their credentials and passwords are in a private file.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import click
from psycopg import Connection

from mizan.app.applications import parse_webhook_url
from mizan.command_context import (
    acting_operator,
    command_settings,
    open_transaction,
    record_application_action,
)
from mizan.user import generate_password
from shared.domain.accounts.joining import add_member, reset_member_password
from shared.domain.accounts.members import list_members
from shared.domain.accounts.operators import (
    Operator,
    add_operator,
    list_operators,
    set_operator_password,
)
from shared.domain.accounts.roles import Role
from shared.domain.accounts.sessions import NO_SESSION, end_other_sessions
from shared.domain.applications.credentials import CredentialKind, issue_credential, list_credentials
from shared.domain.applications.merchants import find_or_create_merchant
from shared.domain.applications.registry import (
    NewApplication,
    create_application,
    get_application,
    list_merchant_applications,
    set_webhook_url,
)
from shared.domain.applications.webhook_secrets import roll_webhook_secret
from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.platform.encryption import SecretBox
from shared.platform.errors import RefusedError
from shared.platform.keys import open_keys
from shared.platform.outbound_url import WebhookUrl
from shared.platform.private_files import write_private_file
from shared.platform.production import demo_data
from shared.platform.production.demo_data import DEMO_MERCHANT, DEMO_NAMES
from shared.platform.settings import Environment, KeyPurpose
from shared.platform.strict_json import InvalidJsonError, parse_json_object
from shared.platform.tokens import token_prefix
from shared.platform.uuids import parse_uuid

_WEBHOOK_URL_CHANGED = "The webhook URL of the demo application was changed; it is kept."


class NoDemoInProductionError(RefusedError):
    def __init__(self) -> None:
        super().__init__(
            "MIZAN_ENV is production: a demo is refused there, because its passwords are in a file"
        )


@click.command("demo")
@click.option(
    "--file",
    "path",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Private JSON file for the credentials; a second run reads it and creates nothing.",
)
@click.option("--webhook-url", help="Where the demo application's webhooks go, unless its owner set another.")
def demo_command(path: Path, webhook_url: str | None) -> None:
    """Create or find the demo merchant, its application, its owner and an operator. Refused in production."""
    with command_settings() as settings:
        if settings.environment is Environment.PRODUCTION:
            raise NoDemoInProductionError
        url = parse_webhook_url(webhook_url, settings)
        box = open_keys(settings).open_box(KeyPurpose.WEBHOOK_SECRETS)
        with open_transaction(settings) as connection:
            # Locks the merchant: a second call waits, so only one reads and writes the file.
            merchant = find_or_create_merchant(connection, demo_data.MERCHANT)
            known = _read_file(path)
            kept = _find_or_create(connection, box, merchant, known)
            if url is not None:
                kept |= _set_webhook_url(connection, url, kept)
            if kept != known:
                # Before the commit: if the commit fails, the next call does not find these rows and creates them again.
                path.parent.mkdir(parents=True, exist_ok=True)
                write_private_file(path, json.dumps(kept, indent=2) + "\n")
    click.echo(f"the demo is ready; its credentials and passwords are in {path}")


def _find_or_create(
    connection: Connection[Any], box: SecretBox, merchant: UUID, known: Mapping[str, str]
) -> dict[str, str]:
    """Return the content of the file, with everything that is missing or revoked created again."""
    there = {
        str(application.id): application for application in list_merchant_applications(connection, merchant)
    }
    kept = dict(known) if known.get("application_id") in there else {}
    if not kept or not _credentials_work(connection, kept):
        kept.pop("webhook_url", None)
        named = (one.id for one in there.values() if one.name == demo_data.APPLICATION)
        found = UUID(kept["application_id"]) if kept else next(named, None)
        kept |= _find_or_create_application(connection, box, merchant, found)
    return (
        kept
        | _find_or_create_account(connection, merchant, kept)
        | _find_or_create_account(connection, None, kept)
    )


def _credentials_work(connection: Connection[Any], kept: Mapping[str, str]) -> bool:
    """Return whether neither the key nor the token is revoked."""
    credentials = list_credentials(connection, UUID(kept["application_id"]))
    valid = [credential.prefix for credential in credentials if credential.revoked_at is None]
    return all(token_prefix(kept.get(kind, "")) in valid for kind in CredentialKind)


def _find_or_create_application(
    connection: Connection[Any], box: SecretBox, merchant: UUID, found: UUID | None
) -> dict[str, str]:
    """Create the application, or give an existing one new credentials because nobody knows the old ones."""
    if found is None:
        made = create_application(connection, box, NewApplication(demo_data.APPLICATION, merchant))
        record_application_action(connection, Action.APPLICATION_CREATED, made.id, name=demo_data.APPLICATION)
        return {
            "application_id": str(made.id),
            "api_key": made.api_key,
            "access_token": made.access_token,
            "webhook_secret": made.webhook_secret,
        }
    issued: dict[str, str] = {}
    for kind in (CredentialKind.API_KEY, CredentialKind.ACCESS_TOKEN):
        credential = issue_credential(connection, found, kind)
        issued[kind.value] = credential.text
        record_application_action(
            connection, Action.CREDENTIAL_ISSUED, found, kind=kind, prefix=credential.prefix
        )
    secret = roll_webhook_secret(connection, box, found)
    record_application_action(connection, Action.WEBHOOK_SECRET_ROLLED, found, version=secret.version)
    # Removed so that it is set again: the old receiver cannot verify the new signatures.
    set_webhook_url(connection, found, None)
    return {"application_id": str(found), **issued, "webhook_secret": secret.text}


def _find_or_create_account(
    connection: Connection[Any], merchant: UUID | None, kept: Mapping[str, str]
) -> dict[str, str]:
    """Create the merchant's owner or, without a merchant, the operator; reset the password of an existing one."""
    name, email = ("operator", demo_data.OPERATOR) if merchant is None else ("owner", demo_data.OWNER)
    people = list_operators(connection) if merchant is None else list_members(connection, merchant)
    there = next((one for one in people if one.email == email), None)
    if there is not None and f"{name}_email" in kept:
        return {}
    password, details = generate_password(), {"email": email}
    if isinstance(there, Operator):
        set_operator_password(connection, there.id, password)
        end_other_sessions(connection, there.id, kept=NO_SESSION)
        done = Action.PASSWORD_CHANGED
    elif there is not None:
        reset_member_password(connection, there, password)
        done = Action.PASSWORD_CHANGED
    elif merchant is None:
        add_operator(connection, email, password)
        done = Action.OPERATOR_CREATED
    else:
        _add_owner(connection, merchant, email, password)
        details["role"] = Role.OWNER.value
        done = Action.MEMBER_CREATED
    add_audit_entry(connection, acting_operator(), done, merchant_id=merchant, details=details)
    return {f"{name}_email": email, f"{name}_password": password}


def _add_owner(connection: Connection[Any], merchant: UUID, email: str, password: str) -> None:
    """Add the owner, whose password is in the file even if the address has an account at another merchant."""
    if not add_member(connection, merchant, email, Role.OWNER, password):
        added = next(one for one in list_members(connection, merchant) if one.email == email)
        reset_member_password(connection, added, password)


def _set_webhook_url(
    connection: Connection[Any], wanted: WebhookUrl, kept: Mapping[str, str]
) -> dict[str, str]:
    """Set the webhook URL, unless somebody has changed it since this command set it."""
    application_id = UUID(kept["application_id"])
    current = get_application(connection, application_id).webhook_url
    if current not in (wanted, kept.get("webhook_url")):
        click.echo(_WEBHOOK_URL_CHANGED, err=True)
        return {}
    if current != wanted:
        set_webhook_url(connection, application_id, wanted)
        record_application_action(connection, Action.WEBHOOK_URL_SET, application_id, url=wanted)
    return {"webhook_url": wanted}


def _read_file(path: Path) -> dict[str, str]:
    """Return the content of the file; empty if it is missing or unusable."""
    try:
        known = parse_json_object(path.read_bytes())
    except (FileNotFoundError, InvalidJsonError):
        return {}
    return known if parse_uuid(str(known.get("application_id"))) is not None else {}


_REMOVE_OPERATOR = """
update operators set removed_at = mizan_now() where email = %(operator)s and removed_at is null returning email"""
_REMOVE_MEMBERS = f"""{DEMO_MERCHANT}
update members set removed_at = mizan_now() where merchant_id in (select id from demo) and removed_at is null
returning merchant_id, email"""
_REVOKE = f"""{DEMO_MERCHANT}
update credentials as c set revoked_at = mizan_now() from applications as a
where a.id = c.application_id and a.merchant_id in (select id from demo) and c.revoked_at is null
returning a.id, c.kind, c.prefix"""
_REMOVE_WEBHOOKS = f"""{DEMO_MERCHANT}
update applications set webhook_url = null where merchant_id in (select id from demo) and webhook_url is not null
returning id, old.webhook_url"""


@click.command("remove-demo")
def remove_demo_command() -> None:
    """Disable the demo: remove its operator and members, revoke its API keys and tokens, remove its webhook URLs.
    Its payments stay. Safe to repeat."""
    with command_settings() as settings, open_transaction(settings) as connection:
        removed = _disable_demo(connection, acting_operator())
    click.echo("the demo is disabled" if removed else "there is no demo in this database")


def _disable_demo(connection: Connection[Any], actor: Actor) -> int:
    """Disable the demo's accounts, credentials and webhooks; its payments stay. Return how many were disabled."""
    operators = connection.execute(_REMOVE_OPERATOR, DEMO_NAMES).fetchall()
    for (email,) in operators:
        add_audit_entry(connection, actor, Action.OPERATOR_REMOVED, details={"email": email})
    members = connection.execute(_REMOVE_MEMBERS, DEMO_NAMES).fetchall()
    for merchant_id, email in members:
        add_audit_entry(
            connection, actor, Action.MEMBER_REMOVED, merchant_id=merchant_id, details={"email": email}
        )
    revoked = connection.execute(_REVOKE, DEMO_NAMES).fetchall()
    for application_id, kind, prefix in revoked:
        details = {"kind": kind, "prefix": prefix}
        add_audit_entry(
            connection, actor, Action.CREDENTIAL_REVOKED, application_id=application_id, details=details
        )
    webhooks = connection.execute(_REMOVE_WEBHOOKS, DEMO_NAMES).fetchall()
    for application_id, url in webhooks:
        details = {"url": url}
        add_audit_entry(
            connection, actor, Action.WEBHOOK_URL_REMOVED, application_id=application_id, details=details
        )
    return len(operators) + len(members) + len(revoked) + len(webhooks)
