"""Attempts know when they were sent and when to ask for their outcome; intents are vacuumed soon."""

from alembic import op

revision = "0003"
down_revision = "0002"

# A sent attempt always has a moment at which somebody asks what became of it, so none is forgotten in a crash.
# Only an operator can end an unknown one that nobody can ask about: there the moment is null.
ATTEMPTS = """
alter table payment_attempts
    add column sendings integer not null default 0,
    add column sent_at timestamptz,
    add column verifications integer not null default 0,
    add constraint payment_attempts_sent_is_verified
        check (state <> 'sent' or next_verify_at is not null),
    add constraint payment_attempts_under_way_was_sent
        check (state not in ('sent', 'unknown') or sent_at is not null);
comment on column payment_attempts.sendings is 'how often the provider was asked to charge: once more with each code';
comment on column payment_attempts.sent_at is 'when it was last asked to';
comment on column payment_attempts.verifications is 'how often we have asked since what became of it';
create unique index payment_attempts_one_paid on payment_attempts (intent_uuid) where state = 'paid';
"""

# Kept for ever, so that a fifth of it is a long time: vacuum soon after many have expired, for until then each look
# for what is due next walks past them. And a time that no program can read would make an intent unreadable.
INTENTS = """
alter table payment_intents
    set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000,
         autovacuum_analyze_scale_factor = 0.02);
alter table payment_intents add constraint payment_intents_expire_in_our_time
    check (expires_at between '2000-01-01 00:00Z' and '9999-01-01 00:00Z') not valid;
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (ATTEMPTS, INTENTS):
        connection.exec_driver_sql(statements)
