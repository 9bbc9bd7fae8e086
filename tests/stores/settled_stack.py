"""What has to be true of a whole stack after a store was lost and everything has settled."""

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from shared.platform.database.pool import Database
from shared.platform.settings import DatabaseSettings
from tests.clock import Clock
from tests.stack.running_stack import PROJECT, RunningStack
from tests.stores.load import Load, WebhookInbox
from tests.waiting import eventually

# The first retry waits long enough to be pending whenever a store is lost.
SLOW_RETRIES = "120,120,120,120,120,120,120,120"

_UNSETTLED = """
select array_remove(array[
    case when exists (select from outbox) then 'outbox' end,
    case when exists (select from payment_intents where status = 'processing') then 'processing intents' end,
    case when exists (select from payment_attempts where next_verify_at < mizan_now() + interval '15 seconds')
        then 'status inquiries' end,
    case when exists (select from webhook_deliveries where status = 'pending') then 'pending deliveries' end,
    case when exists (select from intent_events where taken_in_at is null and type in
                      ('payment_intent.succeeded', 'payment_intent.canceled')) then 'events not taken in' end
], null)"""
_AUDIT_INCOMPLETE = 2
_AUDITS = 4
"""How often the audit is run at most. Kafka has 5 seconds to answer, which a busy machine can miss."""
_SUCCEEDED = "select uuid::text from payment_intents where status = 'succeeded' and application_id = %s"
# More than the requeue job waits for a record that may only be late.
_PAST_REQUEUE = timedelta(minutes=20)


def advance_clock(owner_url: str) -> None:
    """Let so much time pass that Kafka's records of before count as lost. Requeueing starts within a minute."""
    database = Database(DatabaseSettings(url=owner_url), "test")
    try:
        Clock(database).advance(_PAST_REQUEUE)
    finally:
        database.close()


def wait_settled(
    stack: RunningStack, application_id: str, inbox: WebhookInbox, *, within: float = 150
) -> set[str]:
    """Wait until nothing is under way and each paid intent's webhook was accepted. Return the paid intents."""
    url = stack.read()["database_url"]

    def waits_for() -> list[str]:
        with psycopg.connect(url) as connection:
            (row,) = connection.execute(_UNSETTLED).fetchall()
        return list(row[0]) or [f"webhook of {uuid}" for uuid in succeeded() - set(inbox.accepted)]

    def succeeded() -> set[str]:
        with psycopg.connect(url) as connection:
            return {uuid for (uuid,) in connection.execute(_SUCCEEDED, (application_id,))}

    try:
        eventually(lambda: not waits_for(), within=within, every=0.5)
    except AssertionError:
        raise AssertionError(f"not settled within {within:g} s: {waits_for()[:10]}") from None
    return succeeded()


def check_acknowledged(load: Load) -> None:
    """Whatever merchants and customers were told is so. One reference has one intent."""
    assert load.find_missing(load.created) == []
    uuids: dict[str, str] = {}
    for one in load.created:
        assert uuids.setdefault(one.reference, one.uuid) == one.uuid
    paid = load.retrieve([one.uuid for one in load.paid])
    assert {uuid: status for uuid, status in paid.items() if status != "succeeded"} == {}


def audit(stack: RunningStack, **environment: str) -> tuple[int, list[dict[str, str]]]:
    """Run `mizan audit`. Return its exit status and its findings."""
    for _ in range(_AUDITS):
        done = run_mizan(stack, "audit", "--json", **environment)
        if done.returncode != _AUDIT_INCOMPLETE:
            break
    assert done.returncode in {0, 1}, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, report["findings"]


def run_mizan(
    stack: RunningStack, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    given = {"STACK_DIR": str(stack.directory), **environment}
    return subprocess.run(
        [PROJECT / "bin" / "mizan", *arguments],
        env={**os.environ, **given},  # noqa: TID251  the child inherits ours
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
