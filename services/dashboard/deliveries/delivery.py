"""One delivery, with its tries and the versions of the secret that signed them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from services.dashboard.deliveries.answer_text import sanitize_text
from shared.domain.deliveries.try_results import RESPONSE_BODY_LIMIT
from shared.platform.uuids import uuid7_datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    id: UUID
    intent_uuid: UUID
    event: str
    status: str
    tries: int
    step: int
    next_due_at: datetime | None
    last_status_code: int | None
    last_failure: str | None
    url: str
    secret_version: int
    is_test: bool
    is_set_aside: bool

    @property
    def created_at(self) -> datetime:
        """When the event happened, by its id."""
        return uuid7_datetime(self.id)


@dataclass(frozen=True, slots=True)
class DeliveryTry:
    number: int
    step: int | None
    """None: a resend."""
    at: datetime
    duration_ms: int
    url: str
    status_code: int | None
    failure: str | None
    secret_version: int
    answer: bytes = field(repr=False)

    @property
    def answer_text(self) -> str:
        return sanitize_text(self.answer)

    @property
    def is_cut(self) -> bool:
        return len(self.answer) >= RESPONSE_BODY_LIMIT


@dataclass(frozen=True, slots=True)
class SecretVersion:
    version: int
    created_at: datetime


_GET = """
select id, intent_uuid, event, status, tries, step, next_due_at, last_status_code, last_failure, url, secret_version,
       is_test, set_aside_at is not null as is_set_aside
from webhook_deliveries where id = %s and application_id = %s"""
# A resend was signed with what was current when it began: the webhook service reads it just before.
_TRIES = """
select t.number, t.step, t.at, t.duration_ms, t.url, t.status_code, t.failure, coalesce(t.response_body, '') as answer,
       case when t.step is not null then %(frozen)s
            else coalesce((select max(version) from webhook_secrets
                           where application_id = %(application)s and created_at <= t.at), %(frozen)s)
       end as secret_version
from webhook_tries as t where t.delivery_id = %(delivery)s order by t.number desc limit 100"""
_VERSIONS = """
select version, created_at from webhook_secrets
where application_id = %s and version = any(%s) order by version desc"""
# What is not met within minutes never is: the URL was removed on the way, or webhooks were paused.
_WAITING = """
select r.created_at from resend_requests as r
where r.delivery_id = %(delivery)s and r.created_at > mizan_now() - interval '10 minutes'
  and not exists (select from webhook_tries as t where t.delivery_id = %(delivery)s and t.resend_id = r.id)
order by r.created_at desc limit 1"""


def find_delivery(connection: Connection[Any], application_id: UUID, delivery_id: UUID) -> Delivery | None:
    """Of this application: another's do not exist."""
    with connection.cursor(row_factory=class_row(Delivery)) as cursor:
        return cursor.execute(_GET, (delivery_id, application_id)).fetchone()


def list_tries(connection: Connection[Any], application_id: UUID, delivery: Delivery) -> list[DeliveryTry]:
    """The latest first."""
    values = {"delivery": delivery.id, "application": application_id, "frozen": delivery.secret_version}
    with connection.cursor(row_factory=class_row(DeliveryTry)) as cursor:
        return cursor.execute(_TRIES, values).fetchall()


def list_versions(
    connection: Connection[Any], application_id: UUID, versions: Sequence[int]
) -> list[SecretVersion]:
    """The latest first."""
    with connection.cursor(row_factory=class_row(SecretVersion)) as cursor:
        return cursor.execute(_VERSIONS, (application_id, list(versions))).fetchall()


def find_waiting_resend(connection: Connection[Any], delivery_id: UUID) -> datetime | None:
    """When somebody asked for a resend that has not been sent yet."""
    row = connection.execute(_WAITING, {"delivery": delivery_id}).fetchone()
    return None if row is None else row[0]
