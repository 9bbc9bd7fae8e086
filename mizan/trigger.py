"""`mizan trigger`: makes a new intent of an application succeed, expire, or be paid after its expiry, for real."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID, uuid4

import click
import requests

from mizan.app.applications import application_option
from mizan.command_context import (
    command_settings,
    open_database,
    record_application_action,
)
from mizan.output import json_option, show_values
from mizan.sandbox import check_is_test_application, find_charge, require_sandbox, settle_as_paid
from services.sandbox.checkout_client import WAIT_S, CheckoutClient, NotPaidError, Payment
from shared.domain.applications.credentials import CredentialKind, issue_credential, revoke_credential
from shared.domain.audit_log import Action
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.errors import RefusedError
from shared.platform.http_session import open_http_session
from shared.platform.settings import SandboxSettings, Settings
from shared.platform.strict_json import InvalidJsonError, parse_json_object

_EVENT_PREFIX = "payment_intent."
_INTENTS_PATH = "/api/v1/payment-intents"
_AMOUNT = 25_000
_GOOD_CARD = "4242424242424242"
_LATE_CARD = "4000000000000259"
"""Declined, until its charge is settled."""
_SHORTEST_EXPIRY = timedelta(minutes=5, seconds=5)
"""§4.1: more than 5 minutes."""
_TIMEOUT_S = 15
_CREATED = 201


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    CANCELED = "canceled"
    LATE = "late"


class TriggerFailedError(RefusedError):
    """The intent could not be created, or did not get the wanted status in time."""


def _parse_outcome(_context: click.Context, _parameter: click.Parameter, text: str) -> Outcome:
    try:
        return Outcome(text.removeprefix(_EVENT_PREFIX))
    except ValueError:
        names = ", ".join(f"{_EVENT_PREFIX}{outcome}" for outcome in Outcome)
        raise click.BadParameter(f"name one of {names}") from None


@click.command("trigger")
@click.argument("outcome", metavar="EVENT", callback=_parse_outcome)
@application_option
@json_option
def trigger_command(outcome: Outcome, application_id: UUID, as_json: bool) -> None:
    """Create an intent of an application and make EVENT happen to it, in the sandbox.

    payment_intent.succeeded is paid by card. payment_intent.canceled expires unpaid, which takes 5 minutes: no intent
    may expire sooner. payment_intent.late is canceled in the same way and then paid late, so that both events are sent.
    The intent is created through the API, with an API key and an access token that are revoked at once.
    Refused without a sandbox, and in production.
    """
    with command_settings() as settings:
        sandbox = require_sandbox(settings)
        with open_database(settings) as database:
            with database.transaction() as connection:
                check_is_test_application(connection, application_id)
            expires_at = None if outcome is Outcome.SUCCEEDED else _shortest_expiry(database)
            uuid = _create_intent(settings, database, application_id, expires_at)
        with closing(CheckoutClient(settings.public_urls.checkout, uuid)) as client:
            match outcome:
                case Outcome.SUCCEEDED:
                    client.pay(Payment.by_card(_GOOD_CARD), WAIT_S)
                case Outcome.CANCELED:
                    _let_expire(client, uuid)
                case Outcome.LATE:
                    _pay_late(client, uuid, sandbox)
            status = client.status()
    note = "Webhooks are sent if the application has a webhook URL."
    show_values({"uuid": uuid, "status": status}, as_json=as_json, note=note)


def _shortest_expiry(database: Database) -> datetime:
    """Return the earliest expiry that is allowed, by the database's clock."""
    with database.cursor() as cursor:
        now: datetime = fetch_scalar(cursor, "select mizan_now()")
    return now + _SHORTEST_EXPIRY


def _create_intent(
    settings: Settings, database: Database, application_id: UUID, expires_at: datetime | None
) -> UUID:
    """Create an intent as the application's server does. Raises TriggerFailedError and ApplicationNotFoundError."""
    api_url = settings.public_urls.api
    body = {
        "merchant_reference": f"trigger-{uuid4().hex}",
        "amount": _AMOUNT,
        "currency": "LYD",
        "description": "mizan trigger",
        "expires_at": None if expires_at is None else expires_at.isoformat(),
    }
    with _short_lived_credentials(database, application_id) as headers, open_http_session() as session:
        try:
            response = session.post(
                f"{api_url}{_INTENTS_PATH}", json=body, headers=headers, timeout=_TIMEOUT_S
            )
            content = parse_json_object(response.content)
        except (requests.RequestException, InvalidJsonError) as error:
            problem = f"cannot be reached ({type(error).__name__}): is the stack running?"
            raise TriggerFailedError(f"the API at {api_url} {problem}") from None
    if response.status_code != _CREATED:
        message = content.get("message") or content.get("error")
        raise TriggerFailedError(f"the API at {api_url} responded with {response.status_code}: {message}")
    return UUID(content["data"]["uuid"])


@contextmanager
def _short_lived_credentials(database: Database, application_id: UUID) -> Iterator[dict[str, str]]:
    """Issue an API key and an access token, and revoke them afterwards. Yield the headers of a request."""
    with database.transaction() as connection:
        issued = [issue_credential(connection, application_id, kind) for kind in CredentialKind]
        for one in issued:
            record_application_action(
                connection, Action.CREDENTIAL_ISSUED, application_id, kind=one.kind, prefix=one.prefix
            )
    key, token = issued
    try:
        yield {"X-API-Key": key.text, "Authorization": f"Bearer {token.text}"}
    finally:
        with database.transaction() as connection:
            for one in issued:
                revoke_credential(connection, application_id, one.id)
                record_application_action(
                    connection, Action.CREDENTIAL_REVOKED, application_id, kind=one.kind, prefix=one.prefix
                )


def _let_expire(client: CheckoutClient, uuid: UUID) -> None:
    """Wait until the scheduler has canceled the intent. Raises TriggerFailedError if it does not."""
    click.echo(f"intent {uuid} expires in 5 minutes; waiting until it is canceled", err=True)
    _wait_for(client, IntentStatus.CANCELED, _SHORTEST_EXPIRY.total_seconds() + WAIT_S)


def _pay_late(client: CheckoutClient, uuid: UUID, sandbox: SandboxSettings) -> None:
    """Have a charge declined, let the intent expire, then settle the charge as paid."""
    charge = _make_declined_charge(client, uuid, sandbox)
    _let_expire(client, uuid)
    click.echo("it is canceled; settling its charge as paid", err=True)
    settle_as_paid(sandbox, charge)
    _wait_for(client, IntentStatus.SUCCEEDED, WAIT_S)


def _make_declined_charge(client: CheckoutClient, uuid: UUID, sandbox: SandboxSettings) -> str:
    """Return the id of the charge. Raises NotPaidError if there is none, for example because cards are not accepted."""
    try:
        client.pay(Payment.by_card(_LATE_CARD), WAIT_S)
    except NotPaidError:
        charge = find_charge(sandbox, uuid)
        if charge is None:
            raise
        return charge
    raise TriggerFailedError(f"intent {uuid} was paid at once: the sandbox should have declined this card")


def _wait_for(client: CheckoutClient, wanted: IntentStatus, wait_s: float) -> None:
    status = client.wait_until(lambda status: status is wanted, wait_s)
    if status is not wanted:
        raise TriggerFailedError(f"the intent is {status}, and not {wanted} within {wait_s:g} seconds")
