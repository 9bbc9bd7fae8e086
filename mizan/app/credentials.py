"""`mizan app credentials`, `issue-key`, `issue-token` and `revoke`."""

from uuid import UUID

import click

from mizan.app.applications import application_argument
from mizan.command_context import command_settings, open_transaction, record_application_action
from mizan.output import json_option, show_table, show_values, timestamp
from shared.domain.applications.credentials import (
    CredentialKind,
    find_credential,
    issue_credential,
    list_credentials,
    revoke_credential,
)
from shared.domain.audit_log import Action


@click.command("credentials")
@application_argument
@json_option
def credentials_command(application_id: UUID, as_json: bool) -> None:
    """List an application's API keys and access tokens, oldest first."""
    with command_settings() as settings, open_transaction(settings) as connection:
        credentials = list_credentials(connection, application_id)
    show_table(
        [
            {
                "id": credential.id,
                "kind": credential.kind,
                "prefix": credential.prefix,
                "created_at": timestamp(credential.created_at),
                "last_used_at": timestamp(credential.last_used_at),
                "revoked_at": timestamp(credential.revoked_at),
            }
            for credential in credentials
        ],
        "credentials",
        as_json=as_json,
        empty="The application has no credentials; `issue-key` and `issue-token` create them.",
    )


@click.command("issue-key")
@application_argument
@json_option
def issue_key_command(application_id: UUID, as_json: bool) -> None:
    """Issue another API key to an application and print it, once."""
    _issue(application_id, CredentialKind.API_KEY, as_json)


@click.command("issue-token")
@application_argument
@json_option
def issue_token_command(application_id: UUID, as_json: bool) -> None:
    """Issue another access token to an application and print it, once."""
    _issue(application_id, CredentialKind.ACCESS_TOKEN, as_json)


@click.command("revoke")
@application_argument
@click.argument("credential")
def revoke_command(application_id: UUID, credential: str) -> None:
    """Revoke an API key or access token. CREDENTIAL is its id, or a prefix that identifies it."""
    with command_settings() as settings, open_transaction(settings) as connection:
        found = find_credential(connection, application_id, credential)
        revoked_now = revoke_credential(connection, application_id, found.id)
        if revoked_now:
            record_application_action(
                connection,
                Action.CREDENTIAL_REVOKED,
                application_id,
                kind=found.kind,
                prefix=found.prefix,
            )
    click.echo(f"{found.kind} {found.prefix} ({found.id}) {'is' if revoked_now else 'was already'} revoked")


def _issue(application_id: UUID, kind: CredentialKind, as_json: bool) -> None:
    with command_settings() as settings, open_transaction(settings) as connection:
        issued = issue_credential(connection, application_id, kind)
        record_application_action(
            connection, Action.CREDENTIAL_ISSUED, application_id, kind=kind, prefix=issued.prefix
        )
    show_values(
        {"application_id": application_id, "credential_id": issued.id, kind.value: issued.text},
        as_json=as_json,
        note="It is shown once. Earlier ones stay valid until they are revoked.",
    )
