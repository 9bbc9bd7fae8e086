"""How a transaction wakes the relay, which otherwise looks for new outbox rows a few times a second.

Only what somebody waits for does so: a commit with a notification waits for all others that have one.
"""

from typing import Any

from psycopg import Connection

CHANNEL = "outbox"
WAKE_RELAY_SQL = f"pg_notify('{CHANNEL}', '')"
_WAKE_RELAY = f"select {WAKE_RELAY_SQL}"


def wake_relay(connection: Connection[Any]) -> None:
    """Wake the relay when this transaction commits."""
    connection.execute(_WAKE_RELAY)
