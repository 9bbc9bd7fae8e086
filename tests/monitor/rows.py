"""Inserts rows as the services would have left them."""

from datetime import timedelta
from uuid import UUID, uuid4

from tests.monitor.world import MonitorWorld

_INTENT = """
insert into payment_intents (uuid, application_id, merchant_reference, reference, amount, currency, status, expires_at)
values (uuidv7(%(ago)s::interval * -1), %(application)s, %(reference)s, %(reference)s, 25000, 'LYD', %(status)s,
        mizan_now() + %(expires)s::interval) returning uuid"""
_ATTEMPT = """
insert into payment_attempts (id, intent_uuid, method, provider, state, created_at, sent_at, next_verify_at)
values (uuidv7(%(ago)s::interval * -1), %(intent)s, 'card', %(provider)s, %(state)s, mizan_now() - %(ago)s::interval,
        case when %(state)s in ('sent', 'unknown') then mizan_now() - %(ago)s::interval end,
        case when %(asks)s then mizan_now() end) returning id"""
_EVENT = """
insert into intent_events (id, intent_uuid, seq, type, at, taken_in_at)
values (uuidv7(%(ago)s::interval * -1), %(intent)s, 1, %(type)s, mizan_now(),
        case when %(taken)s then mizan_now() end)"""
_DELIVERY = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries, step,
                                next_due_at, set_aside_at, updated_at)
values (uuidv7(%(ago)s::interval * -1), uuidv7(), %(application)s, 'payment_intent.succeeded',
        'https://shop.example.ly/hooks', 1, %(status)s, %(tries)s, %(step)s,
        case when %(status)s = 'pending' then mizan_now() - %(overdue)s::interval end,
        case when %(set_aside)s then mizan_now() end, mizan_now())
returning id"""
_ZERO = timedelta()


def make_intent(
    world: MonitorWorld,
    status: str = "requires_payment_method",
    *,
    ago: timedelta = _ZERO,
    expires: timedelta = timedelta(hours=1),
    application_id: UUID | None = None,
) -> UUID:
    values = {
        "ago": ago,
        "application": application_id or world.application.id,
        "reference": uuid4().hex[:20],
        "status": status,
        "expires": expires,
    }
    return _made(world, _INTENT, values)


def make_attempt(
    world: MonitorWorld,
    state: str,
    *,
    ago: timedelta = _ZERO,
    can_be_asked: bool = True,
    intent: UUID | None = None,
    provider: str = "sandbox",
) -> UUID:
    """Insert an attempt, of a new intent if none is given."""
    values = {
        "ago": ago,
        "intent": intent or make_intent(world),
        "state": state,
        "asks": can_be_asked,
        "provider": provider,
    }
    return _made(world, _ATTEMPT, values)


def make_event(
    world: MonitorWorld,
    kind: str,
    *,
    ago: timedelta = _ZERO,
    is_taken_in: bool = True,
    intent: UUID | None = None,
) -> None:
    """Insert an event, of an intent that is older than all figures if none is given."""
    values = {
        "ago": ago,
        "intent": intent or make_intent(world, "canceled", ago=timedelta(days=2)),
        "type": f"payment_intent.{kind}",
        "taken": is_taken_in,
    }
    with world.database.cursor() as cursor:
        cursor.execute(_EVENT.encode(), values)


def make_delivery(
    world: MonitorWorld,
    status: str = "pending",
    *,
    application_id: UUID | None = None,
    ago: timedelta = _ZERO,
    tries: int = 0,
    step: int = 1,
    overdue: timedelta = _ZERO,
    is_set_aside: bool = False,
) -> UUID:
    values = {
        "ago": ago,
        "application": application_id or world.application.id,
        "status": status,
        "tries": tries,
        "step": step,
        "overdue": overdue,
        "set_aside": is_set_aside,
    }
    return _made(world, _DELIVERY, values)


def _made(world: MonitorWorld, statement: str, values: dict[str, object]) -> UUID:
    with world.database.cursor() as cursor:
        row = cursor.execute(statement.encode(), values).fetchone()
    assert row is not None
    return UUID(str(row[0]))
