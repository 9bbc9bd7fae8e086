"""The webhook inbox: accepted secrets, and the webhooks received.

Webhooks are stored before they are acknowledged, and each is processed once.
"""

import json
import sqlite3
from dataclasses import dataclass

_OLD_SECRET_VALID_S = 2 * 86_400.0
"""Retries that were queued before a roll use the old secret, and continue for about a day."""


def add_secret(connection: sqlite3.Connection, secret: str, at: float) -> None:
    connection.execute("insert into webhook_secrets values (?, ?) on conflict do nothing", (secret, at))


def accepted_secrets(connection: sqlite3.Connection, now: float) -> list[str]:
    """Return the newest secret, and for two days after a roll also the one before."""
    rows = connection.execute("select secret, since from webhook_secrets order by since, rowid").fetchall()
    followed = zip(rows, [*rows[1:], None], strict=True)
    return [
        row["secret"]
        for row, next_ in followed
        if next_ is None or next_["since"] > now - _OLD_SECRET_VALID_S
    ]


@dataclass(frozen=True, slots=True)
class Webhook:
    id: str
    event: str
    uuid: str
    received_at: float
    tried: int = 0


def store_webhook(connection: sqlite3.Connection, webhook: Webhook) -> bool:
    """Store the webhook. Return False if its id is known: Mizan keeps the id across retries and resends."""
    added = connection.execute(
        "insert into inbox (id, event, uuid, received_at, work_at) values (?, ?, ?, ?, ?) on conflict do nothing",
        (webhook.id, webhook.event, webhook.uuid, webhook.received_at, webhook.received_at),
    )
    return added.rowcount == 1


def due_webhooks(connection: sqlite3.Connection, now: float) -> list[Webhook]:
    rows = connection.execute(
        """select id, event, uuid, received_at, tried from inbox where work_at <= ?
           order by work_at limit 20""",
        (now,),
    )
    return [Webhook(**dict(row)) for row in rows]


def mark_done(connection: sqlite3.Connection, webhook_id: str) -> None:
    connection.execute("update inbox set work_at = null where id = ?", (webhook_id,))


def reschedule_webhook(connection: sqlite3.Connection, webhook_id: str, at: float) -> None:
    connection.execute("update inbox set tried = tried + 1, work_at = ? where id = ?", (at, webhook_id))


def is_in_journal(connection: sqlite3.Connection, order_id: str, webhook_id: str) -> bool:
    rows = connection.execute(
        "select detail from journal where order_id = ? and step = 'webhook'", (order_id,)
    )
    return any(json.loads(row["detail"]).get("id") == webhook_id for row in rows)
