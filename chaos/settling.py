"""What follows after load and faults have stopped: waiting until the product has settled, and the final records."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg
import requests

from chaos.clock import ProductClock
from chaos.history import (
    AuditEnded,
    ChargeAtBank,
    DeliveryShown,
    DuplicateReported,
    History,
    OutboxCounted,
    SettlingEnded,
    TryShown,
)
from shared.platform.settings import SandboxSettings
from shared.platform.tokens import sandbox_authorization
from stack.programs import PROJECT

SETTLE_SECONDS = 300
"""How long everything may take to settle."""
_BEFORE_FIRST_JUMP_S = 15.0
_FIRST_JUMP_S = 2400.0
"""Expires what expires soon, and makes what Kafka lost overdue: that is requeued after 15 minutes and a sweep."""
_NEXT_JUMP_S = 4000.0
"""Nothing is requeued twice within an hour."""
_BETWEEN_JUMPS_S = 100.0
_DEAD_SECONDS = 300.0
"""How long nine tries may take at receivers that never recover, many at a time."""
_REQUEST_SECONDS = 30
_AUDIT_SECONDS = 180
_AUDIT_INCOMPLETE = 2
_AUDITS = 4
"""How often the audit is run at most. Kafka has 5 seconds to answer, which a busy machine can miss."""

_WAITING = """
select 'outbox rows', count(*) from outbox
union all
select 'events without a delivery', count(*) from intent_events
where taken_in_at is null and type in ('payment_intent.succeeded', 'payment_intent.canceled')
union all
select 'pending deliveries', count(*) from webhook_deliveries
where status = 'pending' and not is_test and application_id <> all(%(without)s)
union all
select 'processing intents', count(*) from payment_intents where status = 'processing'
union all
select 'open intents past their expiry', count(*) from payment_intents
where status = 'requires_payment_method' and expires_at <= mizan_now()
union all
select 'attempts without an outcome', count(*) from payment_attempts where state in ('sent', 'unknown')
union all
select 'status inquiries that are due', count(*) from payment_attempts
where %(asks_again)s and next_verify_at <= mizan_now()"""
_DELIVERIES = """
select d.id::text, d.application_id::text, d.intent_uuid::text, d.event, d.status,
       (select count(*) from webhook_tries as t where t.delivery_id = d.id and t.step is not null)
from webhook_deliveries as d where not is_test order by d.id"""
_TRIES = """
select t.delivery_id::text, t.number, t.step is not null, extract(epoch from t.at)::float8,
       coalesce(t.status_code::text, t.failure, '')
from webhook_tries as t join webhook_deliveries as d on d.id = t.delivery_id
where not d.is_test order by t.delivery_id, t.number"""
_DUPLICATES = "select intent_uuid::text, id::text from payment_attempts where state = 'duplicate' order by id"


class Settling:
    """Reads the product's tables as its owner, past all proxies."""

    def __init__(
        self,
        database_url: str,
        sandbox: SandboxSettings,
        history: History,
        clock: ProductClock,
        *,
        asks_again: bool,
    ) -> None:
        """`asks_again`: the scheduler has the bank asked again after it said that nothing was charged."""
        self._database_url = database_url
        self._sandbox = sandbox
        self._history = history
        self._clock = clock
        self._asks_again = asks_again

    def wait(self, dead_applications: Sequence[str], report: Callable[[Sequence[str]], None]) -> bool:
        """Wait until nothing is under way any more, and record whether that was in time.

        Deliveries to receivers that never recover are not waited for. The clock is moved so that intents expire and
        lost records are requeued. `report` is told what is still waited for.
        """
        began = time.monotonic()
        next_jump, jump = began + _BEFORE_FIRST_JUMP_S, _FIRST_JUMP_S
        has_jumped = False
        while True:
            waits_for = self._waits_for(dead_applications)
            report(waits_for)
            now = time.monotonic()
            is_over = now - began > SETTLE_SECONDS
            if (not waits_for and has_jumped) or is_over:
                break
            if now >= next_jump or (not waits_for and not has_jumped):
                self._clock.move(jump)
                has_jumped, jump, next_jump = True, _NEXT_JUMP_S, now + _BETWEEN_JUMPS_S
            time.sleep(1)
        self._history.add(SettlingEnded(at=time.time(), settled=not waits_for, waits_for=tuple(waits_for)))
        return not waits_for

    def wait_for_dead(self, report: Callable[[Sequence[str]], None]) -> None:
        """Wait until the deliveries to receivers that never recover have failed.

        What is sent later would be in no try that `record_final_state` lists.
        """
        deadline = time.monotonic() + _DEAD_SECONDS
        while (waits_for := self._waits_for([])) and time.monotonic() < deadline:
            report(waits_for)
            time.sleep(1)

    def _waits_for(self, dead_applications: Sequence[str]) -> list[str]:
        without = [UUID(application) for application in dead_applications]
        try:
            rows = self._query(_WAITING, {"without": without, "asks_again": self._asks_again})
        except psycopg.Error as error:
            return [f"PostgreSQL: {error}"]
        return [f"{count} {what}" for what, count in rows if count]

    def record_final_state(self) -> None:
        """Record the bank's charges, and the duplicates, deliveries, tries and outbox of the product."""
        for charge in self._charges():
            self._history.add(
                ChargeAtBank(
                    at=time.time(),
                    charge=charge["id"],
                    uuid=charge["intent"],
                    attempt=charge["attempt"],
                    amount=charge["amount"],
                    method=charge["method"],
                    status=charge["status"],
                )
            )
        for uuid, attempt in self._query(_DUPLICATES):
            self._history.add(DuplicateReported(at=time.time(), uuid=uuid, attempt=attempt))
        for delivery, application, uuid, event, status, tries in self._query(_DELIVERIES):
            self._history.add(
                DeliveryShown(
                    at=time.time(),
                    delivery=delivery,
                    application=application,
                    uuid=uuid,
                    event=event,
                    status=status,
                    scheduled_tries=tries,
                )
            )
        for delivery, number, is_scheduled, began_at, result in self._query(_TRIES):
            self._history.add(
                TryShown(
                    at=time.time(),
                    delivery=delivery,
                    number=number,
                    scheduled=is_scheduled,
                    began_at=began_at,
                    result=result,
                )
            )
        ((rows,),) = self._query("select count(*) from outbox")
        self._history.add(OutboxCounted(at=time.time(), rows=rows))

    def _charges(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after = str(UUID(int=0))
        while True:
            response = requests.get(
                f"{self._sandbox.url}/charges",
                params={"after": after},
                headers={"Authorization": sandbox_authorization(self._sandbox.secret)},
                timeout=_REQUEST_SECONDS,
            )
            response.raise_for_status()
            page = response.json()["charges"]
            if not page:
                return found
            found += page
            after = page[-1]["attempt"]

    def _query(self, statement: str, values: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._database_url, connect_timeout=5) as connection:
            return connection.execute(statement.encode(), values).fetchall()

    def audit(self, environment: Mapping[str, str]) -> None:
        """Run `mizan audit` and record what it found; again if it could not check everything, as an operator would.

        `environment` names the stack's directory.
        """
        for _ in range(_AUDITS):
            done = subprocess.run(
                [sys.executable, "-m", "mizan", "audit", "--json"],
                env=dict(environment), cwd=PROJECT, capture_output=True, text=True, check=False,
                timeout=_AUDIT_SECONDS,
            )  # fmt: skip
            if done.returncode != _AUDIT_INCOMPLETE:
                break
            time.sleep(5)
        findings = tuple(read_findings(done.stdout, done.stderr))
        self._history.add(AuditEnded(at=time.time(), exit_status=done.returncode, findings=findings))


def read_findings(output: str, errors: str) -> list[str]:
    """Return the findings in the JSON of `mizan audit`, or its error if there is no JSON."""
    try:
        report = json.loads(output)
    except ValueError:
        return [errors.strip() or "no output"]
    findings = [f"{each['check']} {each['id']}: {each['detail']}" for each in report["findings"]]
    return findings + ([f"not checked: {report['not_checked']}"] if report["not_checked"] else [])
