"""Indexes for attempts that need an operator, built beside the payments that go on: nobody waits for them."""

from alembic import op

revision = "0011"
down_revision = "0010"

# Each can be run again: one that was cut off leaves an index that is not valid.
STATEMENTS = (
    "alter table payment_attempts validate constraint payment_attempts_handled_duplicate",
    "drop index concurrently if exists payment_attempts_duplicates_open",
    """create index concurrently payment_attempts_duplicates_open on payment_attempts (id)
       where state = 'duplicate' and handled_at is null""",
    "drop index concurrently if exists payment_attempts_open",
    """create index concurrently payment_attempts_open on payment_attempts (state, id)
       where state in ('awaiting_redirect', 'sent', 'unknown')""",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        connection = op.get_bind().execution_options(no_parameters=True)
        for statement in STATEMENTS:
            connection.exec_driver_sql(statement)
