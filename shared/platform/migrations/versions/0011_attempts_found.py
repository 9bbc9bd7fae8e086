"""Attempts that need an operator and the trace that an intent belongs to, beside the payments that go on.

Each statement is a transaction of its own: one that held two of these tables could wait for a payment that waits for
it, and PostgreSQL would end the payment.
"""

from alembic import op

revision = "0011"
down_revision = "0010"

# Each can be run again: one that was cut off leaves an index that is not valid.
STATEMENTS = (
    """alter table payment_attempts
       add column if not exists handled_at timestamptz,
       add column if not exists handled_note text,
       drop constraint if exists payment_attempts_handled_duplicate,
       add constraint payment_attempts_handled_duplicate
           check (handled_at is null or state = 'duplicate' and handled_note <> '') not valid""",
    """comment on column payment_attempts.handled_at is
       'of a duplicate: when an operator said that it was seen to'""",
    "alter table payment_intents add column if not exists trace text",
    """comment on column payment_intents.trace is
       'W3C traceparent of the call that made it; null where nothing is traced'""",
    "alter table outbox add column if not exists trace text",
    "comment on column outbox.trace is 'W3C traceparent, which goes into the record''s headers'",
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
