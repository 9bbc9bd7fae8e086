"""The outbox relay with real PostgreSQL and Kafka: every row is published, in order, through all failures."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Event, Thread
from uuid import UUID

import pytest

from services.scheduler.job_runner import JobFailingError
from services.scheduler.jobs import relay as relay_module
from services.scheduler.quarantine import QuarantineNotEmptyError
from shared.domain.messages import IntentEvent
from shared.platform.database.connections import PooledConnection
from shared.platform.database.pool import Database, DatabaseUnavailableError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import DatabaseSettings
from stack.engines import Engines
from tests.database_roles import as_role
from tests.scheduler.conftest import Outbox, Relays
from tests.topics import TopicReader
from tests.waiting import error_text, eventually


def _in_order(events: Sequence[IntentEvent], intents: Sequence[UUID], changes: int) -> bool:
    """Return whether each change of each intent is there once, in order."""
    return all(
        [event.seq for event in events if event.intent_uuid == intent] == list(range(1, changes + 1))
        for intent in intents
    )


def test_every_row_is_published_once_and_in_order(
    outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """Afterwards the outbox is empty."""
    intents = [outbox.create() for _ in range(200)]
    for intent in intents:
        outbox.pay(intent)
    with relays.running():
        eventually(lambda: outbox.waiting() == 0)
    events = reader.events(400)
    assert len(events) == 400
    assert _in_order(events, intents, changes=2)


def test_row_that_commits_late_is_published(
    database: Database, application_id: UUID, outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """Ids are not in commit order: the lower id becomes visible after the higher one was published."""
    with relays.running():
        with database.transaction() as slow:
            slow.execute(
                "insert into outbox (topic, key, payload) values ('payment_intents.events', 'slow', '{}')"
            )
            later = outbox.create()
            assert [event.intent_uuid for event in reader.events(1)] == [later]
        eventually(lambda: outbox.waiting() == 0)


@pytest.mark.parametrize("change", ["paid", "expired", "expired in a batch"])
def test_change_that_a_merchant_is_told_of_wakes_the_relay(
    change: str, outbox: Outbox, relays: Relays, reader: TopicReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait until it would look for rows by itself."""
    waits, wait = Event(), relay_module._wait_for_notification

    def wait_for_minutes(session: PooledConnection, _seconds: float) -> None:
        waits.set()
        wait(session, 300)

    monkeypatch.setattr(relay_module, "_wait_for_notification", wait_for_minutes)
    intent, relay = outbox.create(), relays.make()
    relay.run_once()
    waiting = Thread(target=relay.run_once, daemon=True)
    waiting.start()
    assert waits.wait(40)
    if change == "paid":
        outbox.pay(intent)
    else:
        outbox.expire(intent, in_a_batch=change != "expired")
    waiting.join(40)
    assert not waiting.is_alive()
    relay.run_once()
    relay.close()
    assert [event.seq for event in reader.events(2)] == [1, 2]


def test_rolled_back_rows_are_never_published(
    database: Database, outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """No message reports a change that did not happen."""
    intent = outbox.create()
    with pytest.raises(RuntimeError), database.transaction() as connection:
        connection.execute(
            "insert into outbox (topic, key, payload) values ('payment_intents.events', 'x', '{}')"
        )
        raise RuntimeError
    with relays.running():
        eventually(lambda: outbox.waiting() == 0)
    assert [event.intent_uuid for event in reader.events(1)] == [intent]


@pytest.mark.kills
def test_rows_wait_while_kafka_is_unavailable_and_are_then_published_once_each(
    killable_engines: Engines, outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """The broker is killed under load: creating and paying continue; all rows are published after its return."""
    intents = [outbox.create() for _ in range(50)]
    with relays.running():
        eventually(lambda: outbox.waiting() == 0)
        killable_engines.kafka.kill()
        for intent in intents:
            outbox.pay(intent)
        more = [outbox.create() for _ in range(50)]
        assert outbox.waiting() == 100
        killable_engines.kafka.start()
        eventually(lambda: outbox.waiting() == 0, within=60)
    events = reader.events(150)
    assert len(events) == 150
    assert _in_order(events, intents, changes=2)
    assert _in_order(events, more, changes=1)


@pytest.mark.kills
def test_relay_recovers_after_a_database_restart(
    killable_engines: Engines, outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """It fails, reports it, and recovers by itself."""
    outbox.create()
    with relays.running() as runner:
        eventually(lambda: outbox.waiting() == 0)
        killable_engines.postgres.stop()
        eventually(lambda: error_text(runner.check, JobFailingError))
        killable_engines.postgres.start()
        outbox.create()
        eventually(lambda: outbox.waiting() == 0)
        eventually(lambda: not error_text(runner.check, JobFailingError))
    assert len(reader.events(2)) == 2


def test_relay_reconnects_when_the_server_became_a_standby(
    database: Database, outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """It publishes nothing that it cannot delete, and a new session finds the new primary."""
    relay = relays.make()
    relay.run_once()
    session = relay._session
    assert session is not None
    intent = outbox.create()
    session.connection.execute("set default_transaction_read_only = on")
    with pytest.raises(DatabaseUnavailableError, match="standby"):
        relay.run_once()
    assert outbox.waiting() == 1
    eventually(lambda: relay.run_once() == 0 and outbox.waiting() == 0)
    assert [event.intent_uuid for event in reader.events(1)] == [intent]
    relay.close()


def test_failed_relay_leaves_the_rows_to_another(outbox: Outbox, relays: Relays, reader: TopicReader) -> None:
    """It pauses for longer and longer after each failure; nobody has to wait for that."""
    failing, other = relays.make(), relays.make()
    failing.run_once()
    intent = outbox.create()
    assert other.run_once() == relay_module._STANDBY_PAUSE_S
    session = failing._session
    assert session is not None
    session.connection.execute("set default_transaction_read_only = on")
    with pytest.raises(DatabaseUnavailableError):
        failing.run_once()
    eventually(lambda: other.run_once() == 0 and outbox.waiting() == 0, within=5)
    assert [event.intent_uuid for event in reader.events(1)] == [intent]
    failing.close()
    other.close()


@pytest.mark.kills
def test_relay_leaves_a_frozen_server(
    killable_engines: Engines,
    outbox: Outbox,
    relays: Relays,
    reader: TopicReader,
    database_settings: DatabaseSettings,
) -> None:
    """It must follow a failover, although the kernel of a frozen server still confirms what it gets."""
    outbox.create()
    short = replace(as_role("mizan_scheduler", database_settings), statement_timeout_s=1)
    relay = Relays(short, relays.kafka).make()
    relay.run_once()
    outbox.create()
    killable_engines.postgres.suspend()
    try:
        with pytest.raises(DatabaseUnavailableError):
            relay.run_once()
    finally:
        killable_engines.postgres.resume()
    relay.run_once()
    assert outbox.waiting() == 0
    assert len(reader.events(2)) == 2
    relay.close()


@pytest.mark.kills
def test_one_relay_is_active_and_a_standby_takes_over(
    killable_engines: Engines,
    admin_database: Database,
    outbox: Outbox,
    relays: Relays,
    reader: TopicReader,
) -> None:
    """While the first waits for Kafka the second stands by; when the first loses its session, the second publishes."""
    killable_engines.kafka.kill()
    intent = outbox.create()
    stop = Event()
    first, second = relays.make(stop), relays.make()
    outcome: list[BaseException] = []

    def turn() -> None:
        try:
            first.run_once()
        except BaseException as error:  # noqa: BLE001  handed to the test
            outcome.append(error)

    active = """from pg_stat_activity join pg_locks using (pid) where application_name = 'mizan-relay'
                and locktype = 'advisory' and datname = current_database()"""
    thread = Thread(target=turn, daemon=True)
    thread.start()
    with admin_database.cursor() as connection:
        eventually(lambda: connection.execute(f"select {active}".encode()).rowcount)
        assert second.run_once() == relay_module._STANDBY_PAUSE_S
        connection.execute(f"select pg_terminate_backend(pid) {active}".encode())
    thread.join(30)
    assert [type(error) for error in outcome] == [DatabaseUnavailableError]
    killable_engines.kafka.start()
    eventually(lambda: second.run_once() != relay_module._STANDBY_PAUSE_S)
    assert outbox.waiting() == 0
    assert [event.intent_uuid for event in reader.events(1)] == [intent]
    first.close()
    second.close()


@pytest.mark.kills
def test_relay_takes_a_new_client_if_kafka_confirms_nothing(
    killable_engines: Engines,
    monkeypatch: pytest.MonkeyPatch,
    outbox: Outbox,
    relays: Relays,
    reader: TopicReader,
) -> None:
    """A client that waits for a lost cluster may wait for ever, also when there is a new one."""
    monkeypatch.setattr(relay_module, "_CONFIRM_LIMIT_S", 1)
    relay = relays.make()
    killable_engines.kafka.kill()
    intent = outbox.create()
    client = relay._producer._client
    with pytest.raises(KafkaUnavailableError, match="did not confirm within 1 s"):
        relay.run_once()
    assert relay._producer._client is not client
    monkeypatch.undo()
    killable_engines.kafka.start()
    relay.run_once()
    assert [event.intent_uuid for event in reader.events(1)] == [intent]
    relay.close()


@pytest.mark.kills
def test_stalled_relay_loses_its_session(
    killable_engines: Engines,
    monkeypatch: pytest.MonkeyPatch,
    outbox: Outbox,
    relays: Relays,
    reader: TopicReader,
) -> None:
    """PostgreSQL ends the idle session of a relay that does not keep it alive, so that another takes over."""
    monkeypatch.setattr(relay_module, "_STALL_LIMIT_S", 1)
    monkeypatch.setattr(relay_module, "_KEEP_ALIVE_EVERY_S", 3)
    killable_engines.kafka.kill()
    outbox.create()
    stalled = relays.make()
    with pytest.raises(DatabaseUnavailableError):
        stalled.run_once()
    assert outbox.waiting() == 1
    monkeypatch.undo()
    killable_engines.kafka.start()
    with relays.running():
        eventually(lambda: outbox.waiting() == 0)
    assert len(reader.events(1)) == 1
    stalled.close()


@pytest.mark.kills
def test_stopping_while_kafka_is_unavailable_keeps_the_rows(
    killable_engines: Engines, outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """The relay does not wait for Kafka to stop, and no row is lost."""
    killable_engines.kafka.kill()
    outbox.create()
    with relays.running():
        eventually(lambda: outbox.waiting() == 1)
    assert outbox.waiting() == 1
    killable_engines.kafka.start()
    with relays.running():
        eventually(lambda: outbox.waiting() == 0)
    assert len(reader.events(1)) == 1


def _put_huge_row(database: Database, key: str) -> None:
    with database.transaction() as connection:
        connection.execute(
            """insert into outbox (topic, key, payload)
               values ('payment_intents.events', %s, repeat('x', 3000000))""",
            (key,),
        )


def test_row_that_kafka_refuses_delays_only_its_own_key(
    database: Database, outbox: Outbox, relays: Relays, reader: TopicReader
) -> None:
    """It stays in the outbox, later rows of its key wait behind it, and all other keys are published at once."""
    refused = outbox.create()
    with database.transaction() as connection:
        connection.execute("update outbox set payload = repeat('x', 3000000)")
    outbox.pay(refused)
    others = [outbox.create() for _ in range(20)]
    with relays.running() as runner:
        eventually(lambda: outbox.waiting() == 2)
        more = [outbox.create() for _ in range(20)]
        eventually(lambda: outbox.waiting() == 2, within=10)
        runner.check()
    events = reader.events(40)
    assert [event.intent_uuid for event in events if event.intent_uuid == refused] == []
    assert sorted(event.intent_uuid for event in events) == sorted(others + more)


def test_more_refused_rows_than_a_batch_do_not_stop_the_relay(
    database: Database, outbox: Outbox, relays: Relays, monkeypatch: pytest.MonkeyPatch, reader: TopicReader
) -> None:
    """The check of /readyz fails until they are gone."""
    monkeypatch.setattr(relay_module, "BATCH", 3)
    for number in range(4):
        _put_huge_row(database, f"huge-{number}")
    intent = outbox.create()
    relay = relays.make()
    eventually(lambda: relay.run_once() == 0 and outbox.waiting() == 4)
    assert [event.intent_uuid for event in reader.events(1)] == [intent]
    with pytest.raises(QuarantineNotEmptyError, match="4 keys have rows that Kafka refuses"):
        relay.check()
    with database.transaction() as connection:
        connection.execute("update outbox set payload = '{}'")
    eventually(lambda: relay.run_once() == 0 and outbox.waiting() == 0)
    relay.check()
    relay.close()


@pytest.mark.plans
def test_statements_use_the_primary_key_whatever_the_statistics_say(
    database: Database, relays: Relays
) -> None:
    """On a table never analyzed, on a full one whose statistics say it is empty, and on an analyzed one."""
    relay = relays.make()
    connection = relay._open_session().connection

    def plans() -> list[str]:
        return [
            "\n".join(
                line for (line,) in connection.execute(f"explain {statement}".encode(), values).fetchall()
            )
            for statement, values in (
                (relay_module._SELECT_OLDEST, (relay_module.BATCH,)),
                (relay_module._SELECT_OLDEST_NOT_QUARANTINED, (["t"], ["x"], relay_module.BATCH)),
                (relay_module._DELETE, (list(range(relay_module.BATCH)),)),
            )
        ]

    def check() -> None:
        assert all("outbox_pkey" in plan and "Seq Scan" not in plan for plan in plans()), plans()

    check()
    connection.execute("analyze outbox")
    fill = "insert into outbox (topic, key, payload) select 't', 'k', 'p' from generate_series(1, 50000)"
    connection.execute(fill)
    check()
    connection.execute("analyze outbox")
    check()
    relay.close()
