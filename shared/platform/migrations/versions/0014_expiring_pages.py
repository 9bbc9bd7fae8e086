"""Lets addresses of providers' pages expire, and finds the invitations of a member by index."""

from alembic import op

revision = "0014"
down_revision = "0013"

# The default is stable, so PostgreSQL evaluates it once for all existing rows and does not rewrite the table. An intent
# lives for less than 31 days, and nobody is led to the page of an intent that has ended.
_STATEMENTS = (
    """alter table provider_pages
       add column if not exists expires_at timestamptz not null default mizan_now() + interval '31 days'""",
    "comment on column provider_pages.expires_at is 'by then the intent can no longer be paid'",
    "drop index concurrently if exists provider_pages_by_expiry",
    "create index concurrently provider_pages_by_expiry on provider_pages (expires_at)",
    "drop index concurrently if exists one_time_codes_by_subject",
    "create index concurrently one_time_codes_by_subject on one_time_codes (subject, created_at)",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
