"""Inserts many payments and deliveries, as the services would have left them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from shared.domain.intents.intent import new_reference
from shared.domain.intents.states import IntentStatus
from shared.platform.database.pool import fetch_scalar
from tests.dashboard.world import WEBHOOK_URL, DashboardWorld
from tests.monitor.world import MonitorWorld

_INTENT = """
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, status,
                             expires_at, created_at, updated_at, description, customer_external_id, metadata)
values (uuidv7(%s::timestamptz - now()), %s, %s, %s, %s, 'LYD', %s, %s, %s, %s, %s, %s, %s) returning uuid"""
_ATTEMPT = """
insert into payment_attempts (intent_uuid, method, provider, state, reason, created_at, updated_at, sent_at,
                              next_verify_at, provider_reference)
values (%s, %s, 'sandbox', %s, %s, %s, %s, %s, %s, %s) returning id"""
# One every `apart`, the newest now. Columns that do not matter for a list are all the same.
_MANY = """
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, status,
                             expires_at, created_at, updated_at)
select uuidv7(-at), applications[1 + n %% cardinality(applications)], 'order ' || number, 'ref' || number,
       1000 + n %% 9000, 'LYD', statuses[1 + n %% cardinality(statuses)], now() - at + interval '1 day', now() - at,
       now() - at
from generate_series(1, %(count)s) as n,
     lateral (select n + %(there)s as number, n * %(apart)s::interval as at, %(applications)s::uuid[] as applications,
                     %(statuses)s::text[] as statuses) as given"""
# New rows are found by their number: a join that is planned for empty tables would take half an hour.
_JUST_MADE = (
    "status = 'succeeded' and case when reference ~ '^ref[0-9]+$' then substr(reference, 4)::bigint > %s end"
)
_PAID = f"""
insert into payment_attempts (intent_uuid, method, provider, state, created_at, updated_at)
select uuid, 'card', 'sandbox', 'paid', created_at, updated_at from payment_intents where {_JUST_MADE}"""
_DUPLICATES = f"""
insert into payment_attempts (intent_uuid, method, provider, state, created_at, updated_at)
select uuid, 'sadad', 'sandbox', 'duplicate', created_at, updated_at
from payment_intents where {_JUST_MADE} and mod(hashtext(uuid::text), %s) = 0"""

_DELIVERY = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries,
                                last_status_code, last_failure, next_due_at, created_at, updated_at, is_test)
values (uuidv7(%(at)s::timestamptz - now()), %(intent)s, %(application)s, %(event)s, %(url)s, 1, %(status)s, %(tries)s,
        %(status_code)s, %(failure)s, case %(status)s when 'pending' then now() end, %(at)s, %(at)s, %(is_test)s)
returning id"""
_TRY = """
insert into webhook_tries (delivery_id, number, step, at, duration_ms, url, status_code)
values (%s, 1, 1, %s, %s, 'https://shop.example.ly/hooks', %s)"""
# A delivery for each ended intent, as if all had succeeded at once.
_DELIVERED = """
with made as (
    insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries,
                                    last_status_code, created_at, updated_at)
    select uuidv7(created_at - now()), uuid, application_id, 'payment_intent.' || status,
           'https://shop.example.ly/hooks', 1, 'succeeded', 1, 200, created_at, created_at
    from payment_intents where status in ('succeeded', 'canceled')
    returning id, created_at
)
insert into webhook_tries (delivery_id, number, step, at, duration_ms, url, status_code)
select id, 1, 1, created_at, 150, 'https://shop.example.ly/hooks', 200 from made"""

MOSTLY_PAID = (
    (IntentStatus.SUCCEEDED,) * 6 + (IntentStatus.CANCELED,) * 3 + (IntentStatus.REQUIRES_PAYMENT_METHOD,)
)


def make_intent(
    world: DashboardWorld | MonitorWorld,
    merchant_reference: str,
    status: IntentStatus = IntentStatus.REQUIRES_PAYMENT_METHOD,
    *,
    amount: int = 25_500,
    at: datetime | None = None,
    application_id: UUID | None = None,
    description: str | None = None,
    customer: str | None = None,
    metadata: str | None = None,
) -> UUID:
    at = at or datetime.now(UTC)
    row = world.rows(
        _INTENT,
        at,
        application_id or world.application.id,
        merchant_reference,
        new_reference(),
        amount,
        status,
        at + timedelta(days=1),
        at,
        at,
        description,
        customer,
        metadata,
    )[0]
    return UUID(str(row[0]))


def make_attempt(
    world: DashboardWorld | MonitorWorld,
    intent: UUID,
    state: str,
    *,
    method: str = "card",
    reason: str | None = None,
    at: datetime | None = None,
    end: datetime | None = None,
    provider_reference: str | None = None,
) -> UUID:
    at = at or datetime.now(UTC)
    sent_at = at if state in ("sent", "unknown") else None
    row = world.rows(
        _ATTEMPT, intent, method, state, reason, at, end or at, sent_at, sent_at, provider_reference
    )[0]
    return UUID(str(row[0]))


def make_many(
    world: DashboardWorld | MonitorWorld,
    count: int,
    *,
    apart: timedelta = timedelta(seconds=1),
    applications: Sequence[UUID] | None = None,
    statuses: Sequence[IntentStatus] = MOSTLY_PAID,
    one_duplicate_in: int = 50,
) -> None:
    """Spread the payments evenly over these applications and statuses. Some paid ones are paid twice."""
    there = world.rows("select count(*) from payment_intents")[0][0]
    values = {
        "count": count,
        "there": there,
        "apart": apart,
        "applications": list(applications or [world.application.id]),
        "statuses": list(statuses),
    }
    with world.database.cursor() as cursor:
        cursor.execute(_MANY, values)
    world.run(_PAID, there)
    world.run(_DUPLICATES, there, one_duplicate_in)


def make_delivery(
    world: DashboardWorld,
    intent: UUID | None = None,
    status: str = "succeeded",
    *,
    at: datetime | None = None,
    event: str = "payment_intent.succeeded",
    tries: int = 1,
    status_code: int | None = 200,
    failure: str | None = None,
    took: timedelta = timedelta(milliseconds=200),
    url: str = WEBHOOK_URL,
    is_test: bool = False,
    application_id: UUID | None = None,
) -> UUID:
    at = at or datetime.now(UTC)
    values = {
        "at": at,
        "intent": intent or uuid4(),
        "application": application_id or world.application.id,
        "event": event,
        "url": url,
        "status": status,
        "tries": tries,
        "status_code": status_code,
        "failure": failure,
        "is_test": is_test,
    }
    with world.database.cursor() as cursor:
        made = UUID(str(fetch_scalar(cursor, _DELIVERY, values)))
    if status == "succeeded":
        world.run(_TRY, made, at, int(took.total_seconds() * 1000), 200)
    return made


def deliver_all(world: DashboardWorld) -> None:
    """Insert the deliveries that the services would have created for the existing intents."""
    world.run(_DELIVERED)
