"""What an operator does to an application is in its merchant's audit log too."""

from typing import Any
from uuid import UUID

from psycopg import Connection

from mizan.operator_account import operator
from shared.domain.audit_log import Action, add_audit_entry


def note(
    connection: Connection[Any],
    action: Action,
    application_id: UUID,
    **details: str | int | list[str] | None,
) -> None:
    """In the transaction that does what is noted; never with a secret."""
    add_audit_entry(connection, operator(), action, application_id=application_id, details=details)
