"""Bulk resends of waiting deliveries, and dead letters that operators have dismissed."""

from alembic import op

revision = "0021"
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
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
