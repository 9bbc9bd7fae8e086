"""Indexes the planned status inquiries of attempts in every state, not only of those in flight.

A request can come to the provider after an inquiry said "not charged", so inquiries go on for a while
(docs/decisions/0008-expiry-and-attempts.md). The previous version's query uses this index, too.
"""

from alembic import op

revision = "0026"
down_revision = "0025"

_STATEMENTS = (
    # One that an interrupted migration left is not valid.
    "drop index concurrently if exists payment_attempts_inquiries",
    """
    create index concurrently payment_attempts_inquiries on payment_attempts (next_verify_at)
        where next_verify_at is not null""",
    "drop index concurrently if exists payment_attempts_to_verify",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
