"""Webhooks that came in: written down before they are answered, worked on afterwards, each once (§6.5, 2 and 3)."""

import json
import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Webhook:
    id: str
    event: str
    uuid: str
    received_at: float
    tried: int = 0


def receive(connection: sqlite3.Connection, webhook: Webhook) -> bool:
    """Whether it is new: Mizan keeps the id across retries and resends (§2.2)."""
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


def work_later(connection: sqlite3.Connection, webhook_id: str, at: float) -> None:
    connection.execute("update inbox set tried = tried + 1, work_at = ? where id = ?", (at, webhook_id))


def is_journalled(connection: sqlite3.Connection, order_id: str, webhook_id: str) -> bool:
    rows = connection.execute(
        "select detail from journal where order_id = ? and step = 'webhook'", (order_id,)
    )
    return any(json.loads(row["detail"]).get("id") == webhook_id for row in rows)
