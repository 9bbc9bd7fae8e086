"""`mizan app set-provider`."""

from typing import TextIO
from uuid import UUID

import click

from mizan.app.applications import application_argument
from mizan.command_context import command_settings, open_transaction, record_application_action
from mizan.output import json_option, show_values
from shared.domain.applications.provider_accounts import (
    REQUIRED_CREDENTIALS,
    ProviderName,
    plutu_callback_url,
    set_provider_account,
)
from shared.domain.audit_log import Action
from shared.domain.payment_methods import PaymentMethod
from shared.platform.keys import open_keys
from shared.platform.settings import KeyPurpose
from shared.platform.strict_json import MAX_BYTES, parse_json_object


@click.command("set-provider")
@application_argument
@click.option(
    "--method", "method_name", type=click.Choice([method.value for method in PaymentMethod]), required=True
)
@click.option(
    "--provider",
    "adapter_name",
    type=click.Choice([adapter.value for adapter in REQUIRED_CREDENTIALS]),
    required=True,
)
@click.option(
    "--credentials",
    "file",
    type=click.File(),
    help="A file with a JSON object; - reads standard input. [default: prompt for them, without echo]",
)
@json_option
def set_provider_command(
    application_id: UUID, method_name: str, adapter_name: str, file: TextIO | None, as_json: bool
) -> None:
    """Set the provider account for a payment method of a live application. Started attempts keep their account."""
    method, adapter = PaymentMethod(method_name), ProviderName(adapter_name)
    credentials = _prompt_credentials(adapter) if file is None else _read_credentials(file)
    with command_settings() as settings:
        box = open_keys(settings).open_box(KeyPurpose.PROVIDER_CREDENTIALS)
        with open_transaction(settings) as connection:
            account = set_provider_account(
                connection, box, application_id, method, provider=adapter, credentials=credentials
            )
            record_application_action(
                connection, Action.PROVIDER_SET, application_id, method=method, adapter=adapter
            )
    told = {"application_id": application_id, "method": method, "provider": adapter, "account_id": account}
    if adapter is ProviderName.PLUTU:
        told["callback_url"] = plutu_callback_url(settings.public_urls.checkout, account)
    show_values(told, as_json=as_json, note="The credentials are stored encrypted and never shown.")


def _read_credentials(file: TextIO) -> dict[str, str]:
    try:
        read = parse_json_object(file.read(MAX_BYTES + 1).encode())
    except ValueError:  # also if it is not UTF-8
        read = None
    if read is None or not all(isinstance(value, str) for value in read.values()):
        raise click.ClickException("the credentials must be a JSON object of strings without duplicate keys")
    return read


def _prompt_credentials(adapter: ProviderName) -> dict[str, str]:
    return {name: click.prompt(name, hide_input=True) for name in REQUIRED_CREDENTIALS[adapter]}
