"""Inserts deliveries and their tries, as the webhook service would have written them."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from shared.platform.database.pool import Database

SUCCEEDED = "payment_intent.succeeded"
CANCELED = "payment_intent.canceled"

_DELIVERY = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, tries, step,
                                next_due_at, last_status_code, last_failure, is_test)
values (case when %(at)s::timestamptz is null then uuidv7(make_interval(secs => -%(ago_s)s))
             else encode(substring(uuid_send(uuid7_floor(%(at)s)) from 1 for 6)
                         || substring(uuid_send(uuidv7()) from 7), 'hex')::uuid end,
        %(intent)s, %(application)s, %(event)s, 'https://shop.example.ly/hooks', 1, %(status)s, %(tries)s, %(step)s,
        case when %(status)s = 'pending' then mizan_now() + interval '5 minutes' end, %(code)s, %(failure)s,
        %(is_test)s)
returning id"""
_TRY = """
insert into webhook_tries (delivery_id, number, step, resend_id, at, duration_ms, url, status_code, failure,
                           response_body)
values (%(delivery)s, %(number)s, %(step)s, %(resend)s, mizan_now(), 42, 'https://shop.example.ly/hooks', %(code)s,
        %(failure)s, %(answer)s)"""


class Deliveries:
    def __init__(self, database: Database, application_id: UUID) -> None:
        self._database = database
        self.application_id = application_id

    def make(
        self,
        status: str = "succeeded",
        code: int | None = 200,
        *,
        event: str = SUCCEEDED,
        failure: str | None = None,
        tries: int = 1,
        ago: timedelta = timedelta(),
        at: datetime | None = None,
        intent: UUID | None = None,
        is_test: bool = False,
        application_id: UUID | None = None,
    ) -> UUID:
        """Insert a delivery of an event that happened `ago`, or at a given time."""
        values = {
            "at": at,
            "ago_s": ago.total_seconds(),
            "intent": intent or uuid4(),
            "application": application_id or self.application_id,
            "event": event,
            "status": status,
            "tries": tries,
            "step": 9 if status == "failed" else max(1, tries),
            "code": code,
            "failure": failure,
            "is_test": is_test,
        }
        ((made,),) = self.run(_DELIVERY, values)
        return UUID(str(made))

    def make_many(self, count: int, *arguments: Any, **values: Any) -> list[UUID]:
        """Insert several deliveries, and return their ids, oldest first."""
        return [self.make(*arguments, **values) for _ in range(count)]

    def add_try(
        self,
        delivery: UUID,
        number: int = 1,
        code: int | None = 200,
        *,
        failure: str | None = None,
        answer: bytes = b"ok",
        is_resend: bool = False,
    ) -> None:
        values = {
            "delivery": delivery,
            "number": number,
            "step": None if is_resend else number,
            "resend": uuid4() if is_resend else None,
            "code": code,
            "failure": failure,
            "answer": answer,
        }
        self.run(_TRY, values)

    def in_line(self) -> list[str]:
        """Return the deliveries whose resends wait in the outbox, in order."""
        return [
            row[0] for row in self.run("select key from outbox where topic = 'webhooks.resend' order by id")
        ]

    def run(self, statement: str, values: Any = ()) -> list[Any]:
        with self._database.cursor() as cursor:
            cursor.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []
