"""Bulk resends of waiting deliveries, and dead letters that operators have dismissed."""

from alembic import op

revision = "0020"
down_revision = "0019"

_STATEMENTS = (
    # The default keeps services of the previous release working during an upgrade.
    """
    alter table bulk_resends add column if not exists kind text not null default 'failed'
        constraint bulk_resends_kind check (kind in ('failed', 'waiting'))""",
    """
    comment on column bulk_resends.kind is
        'failed: the failed deliveries of a period; waiting: those that were tried and wait for their next try'""",
    "alter table resend_requests add column if not exists unless_succeeded boolean not null default false",
    """
    comment on column resend_requests.unless_succeeded is
        'of a bulk resend: nothing is sent if the delivery has succeeded before its turn'""",
    """
    create table if not exists dead_letter_dismissals (
        dead_letter_id  uuid primary key,
        topic_id        text not null,
        record_offset   bigint not null,
        actor           text not null check (actor <> ''),
        reason          text not null check (reason <> ''),
        dismissed_at    timestamptz not null default mizan_now()
    )""",
    "comment on table dead_letter_dismissals is 'dead letters that an operator decided not to replay'",
    "comment on column dead_letter_dismissals.dead_letter_id is 'as in dead_letter_replays'",
    """
    comment on column dead_letter_dismissals.topic_id is
        'of the topic dead_letters that has it at record_offset; a recreated topic has another id'""",
    "create index if not exists dead_letter_dismissals_by_time on dead_letter_dismissals (dismissed_at)",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
