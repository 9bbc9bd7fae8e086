"""Writing intents to real PostgreSQL: a change, its event and its outbox row are one transaction."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared.domain.intents import store
from shared.domain.intents.intent import Intent, NewIntent
from shared.domain.intents.states import EventType, IntentStatus, IntentTrigger, TransitionNotAllowedError
from shared.domain.intents.store import IntentNotFoundError, apply_trigger, create_batch, create_or_find
from shared.domain.messages import IntentEvent, decode, encode
from shared.platform.database.pool import Database


def _new(application_id: UUID, reference: str = "order-1") -> NewIntent:
    return NewIntent(application_id, reference, 25_000, "LYD", metadata={"size": "كبير", "a": "1"})


def _create(database: Database, new: NewIntent) -> tuple[Intent, bool]:
    with database.cursor() as cursor:
        return create_or_find(cursor, new)


def _rows(database: Database, query: str) -> list[Any]:
    with database.transaction() as connection:
        return connection.execute(query.encode()).fetchall()


def test_new_intent_requires_a_payment_method_and_expires_after_a_day(
    database: Database, application_id: UUID
) -> None:
    """§3 and §4.1: initial state, default expiry, metadata as sent."""
    intent, created = _create(database, _new(application_id))
    assert created
    assert intent.status is IntentStatus.REQUIRES_PAYMENT_METHOD
    assert intent.expires_at - intent.created_at == timedelta(hours=24)
    assert list(intent.metadata or {}) == ["size", "a"]
    assert intent.reference == intent.reference.lower()


def test_repeated_create_returns_the_intent_unchanged(database: Database, application_id: UUID) -> None:
    """§4.1 rule 4: a repeat ignores its other fields; another application has its own references."""
    first, _ = _create(database, _new(application_id))
    again, created = _create(database, replace(_new(application_id), amount=99_000))
    other, other_created = _create(database, _new(uuid4()))
    assert (again, created) == (first, False)
    assert other_created
    assert other.uuid != first.uuid


def test_fifty_concurrent_creates_make_one_intent(database: Database, application_id: UUID) -> None:
    """§4.1 rule 3; its event is written exactly once."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: _create(database, _new(application_id)), range(50)))
    assert sum(created for _, created in answers) == 1
    assert len({intent.uuid for intent, _ in answers}) == 1
    assert _rows(database, "select count(*) from intent_events") == [(1,)]
    assert _rows(database, "select count(*) from outbox") == [(1,)]


def test_batches_with_the_same_references_never_wait_for_each_other_in_a_circle(
    database: Database, application_id: UUID
) -> None:
    """§4.1 rule 3: of two, one creates all, or each some; whatever the order in which they are given."""
    batch = [_new(application_id, f"order-{number}") for number in range(3_000)]
    start = Barrier(2)

    def create(batch: list[NewIntent]) -> int:
        with database.cursor() as cursor:
            start.wait(10)
            return sum(intent is not None for intent in create_batch(cursor, batch))

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(create, [batch, batch[::-1]])) == len(batch)


def test_intents_of_a_batch_with_the_same_short_reference_are_not_mixed_up(
    database: Database, application_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is created. The other is None, never the intent of the first."""
    monkeypatch.setattr(store, "new_reference", lambda: "same")
    with database.cursor() as cursor:
        first, second = create_batch(
            cursor, [_new(application_id, "order-1"), _new(application_id, "order-2")]
        )
    assert first is not None
    assert (first.merchant_reference, second) == ("order-1", None)


def test_every_change_has_one_event_in_order_and_one_message(
    database: Database, application_id: UUID
) -> None:
    """create → sent → failed → expired → paid late: five changes, five events, five outbox rows."""
    intent, _ = _create(database, _new(application_id))
    for trigger in (
        IntentTrigger.ATTEMPT_SENT,
        IntentTrigger.ATTEMPT_FAILED,
        IntentTrigger.EXPIRE,
        IntentTrigger.PAYMENT_CONFIRMED,
    ):
        with database.transaction() as connection:
            apply_trigger(connection, intent.uuid, trigger)
    with database.transaction() as connection:  # a duplicate payment changes nothing
        assert (
            apply_trigger(connection, intent.uuid, IntentTrigger.PAYMENT_CONFIRMED) is IntentStatus.SUCCEEDED
        )
    logged = _rows(database, "select id, seq, type, at from intent_events order by seq")
    assert [(seq, type_) for _, seq, type_, _ in logged] == [
        (1, EventType.CREATED),
        (2, EventType.PROCESSING),
        (3, EventType.REQUIRES_PAYMENT_METHOD),
        (4, EventType.CANCELED),
        (5, EventType.SUCCEEDED),
    ]
    sent = [
        decode(payload.encode()) for (payload,) in _rows(database, "select payload from outbox order by id")
    ]
    assert sent == [
        IntentEvent(
            id=id_,
            intent_uuid=intent.uuid,
            application_id=application_id,
            seq=seq,
            type=EventType(type_),
            at=at,
        )
        for id_, seq, type_, at in logged
    ]
    assert [decode(encode(message)) for message in sent] == sent


def test_nothing_is_written_if_the_transaction_fails(database: Database, application_id: UUID) -> None:
    """Neither intent nor event nor message."""
    with pytest.raises(ZeroDivisionError), database.transaction() as connection:
        create_or_find(connection.cursor(), _new(application_id))
        raise ZeroDivisionError
    for table in ("payment_intents", "intent_events", "outbox"):
        assert _rows(database, f"select count(*) from {table}") == [(0,)]


def test_forbidden_transition_changes_nothing(database: Database, application_id: UUID) -> None:
    """An intent in processing does not expire."""
    intent, _ = _create(database, _new(application_id))
    with database.transaction() as connection:
        apply_trigger(connection, intent.uuid, IntentTrigger.ATTEMPT_SENT)
    with pytest.raises(TransitionNotAllowedError), database.transaction() as connection:
        apply_trigger(connection, intent.uuid, IntentTrigger.EXPIRE)
    assert _rows(database, "select status, event_seq from payment_intents") == [("processing", 2)]


def test_trigger_on_an_unknown_intent_is_an_error(database: Database) -> None:
    with pytest.raises(IntentNotFoundError), database.transaction() as connection:
        apply_trigger(connection, uuid4(), IntentTrigger.EXPIRE)


def test_concurrent_transitions_are_serialised(database: Database, application_id: UUID) -> None:
    """Expiry against confirmation, many times: all end as succeeded, and seq has no gaps or duplicates."""
    intents = [_create(database, _new(application_id, f"order-{n}"))[0] for n in range(40)]

    def pull(job: tuple[Intent, IntentTrigger]) -> None:
        with database.transaction() as connection:
            try:
                apply_trigger(connection, job[0].uuid, job[1])
            except TransitionNotAllowedError:
                assert job[1] is IntentTrigger.EXPIRE

    jobs = [
        (intent, trigger)
        for intent in intents
        for trigger in (IntentTrigger.EXPIRE, IntentTrigger.PAYMENT_CONFIRMED)
    ]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(pull, jobs))
    assert _rows(database, "select distinct status from payment_intents") == [("succeeded",)]
    per_intent = _rows(database, "select array_agg(seq order by seq) from intent_events group by intent_uuid")
    assert all(seqs in ([1, 2], [1, 2, 3]) for (seqs,) in per_intent)
