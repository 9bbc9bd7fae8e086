"""`mizan intent`: one payment intent with everything that happened to it."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import click
from psycopg import Connection

from mizan.command_context import command_settings, open_transaction
from mizan.output import CommandGroup, json_option, show_with_rows, timestamp
from services.dashboard.payments.queries import PaymentHistory, find_payment
from services.dashboard.payments.timeline import TimelineEntry, build_timeline
from shared.domain.attempts.states import MAX_CODE_TRIES
from shared.platform.uuids import parse_uuid

# A merchant's reference is unique within an application only, and indexed by application.
_FIND = """
select i.uuid, a.id, a.name, m.name
from (select uuid, application_id from payment_intents where uuid = %(uuid)s
      union
      select uuid, application_id from payment_intents where reference = lower(%(text)s)
      union
      select found.uuid, found.application_id from applications cross join lateral (
          select uuid, application_id from payment_intents
          where application_id = applications.id and merchant_reference = %(text)s offset 0) as found) as i
join applications as a on a.id = i.application_id join merchants as m on m.id = a.merchant_id
order by i.uuid limit 21"""


@click.group("intent", cls=CommandGroup)
def intent_group() -> None:
    """Show payment intents."""


@intent_group.command("show")
@click.argument("name", metavar="INTENT")
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Show an intent and its timeline. INTENT is its uuid, its reference or its merchant_reference."""
    with command_settings() as settings, open_transaction(settings) as connection:
        uuid, application_id, application, merchant = find_one_intent(connection, name)
        payment = find_payment(connection, application_id, uuid)
    assert payment is not None
    values = {
        "uuid": uuid,
        "merchant": merchant,
        "application": application,
        "application_id": application_id,
        **_details(payment),
    }
    timeline = [_timeline_row(entry) for entry in build_timeline(payment)]
    show_with_rows(values, timeline, "timeline", as_json=as_json)


def find_one_intent(connection: Connection[Any], name: str) -> tuple[UUID, UUID, str, str]:
    """Return the intent, its application and their names. Raises ClickException if there is none, or more than one."""
    found = connection.execute(_FIND, {"uuid": parse_uuid(name), "text": name}).fetchall()
    if not found:
        raise click.ClickException("no intent has this uuid, reference or merchant_reference")
    if len(found) > 1:
        listed = "\n".join(f"  {uuid}  {merchant}, {application}" for uuid, _, application, merchant in found)
        raise click.ClickException(f"several intents have this reference; choose one by its uuid:\n{listed}")
    return found[0]  # type: ignore[no-any-return]


def _details(payment: PaymentHistory) -> Mapping[str, Any]:
    details = payment.details
    return {
        "reference": details.reference.upper(),
        "merchant_reference": details.merchant_reference,
        "status": details.status,
        "amount": details.amount,
        "currency": details.currency,
        "description": details.description,
        "customer_external_id": details.customer_external_id,
        "return_url": details.return_url,
        "metadata": None if details.metadata is None else json.loads(details.metadata),
        "expires_at": timestamp(details.expires_at),
        "created_at": timestamp(details.created_at),
        "updated_at": timestamp(details.updated_at),
    }


def _timeline_row(entry: TimelineEntry) -> Mapping[str, Any]:
    attempt, delivery = entry.attempt, entry.delivery
    return {
        "at": timestamp(entry.at),
        "what": entry.kind.value,
        "note": entry.wrong_code
        and f"Wrong code entered ({entry.wrong_code} of {MAX_CODE_TRIES}); nothing was taken",
        "attempt_id": attempt and attempt.id,
        "method": attempt and attempt.method,
        "provider": attempt and attempt.provider,
        "reason": attempt and attempt.reason,
        "provider_reference": attempt and attempt.provider_reference,
        "delivery_id": delivery and delivery.id,
        "event": delivery and delivery.event,
        "delivery_status": delivery and delivery.status,
        "tries": delivery and delivery.tries,
    }
