"""Records with an event of an intent that it followed from a wrong one-time code."""

from alembic import op

revision = "0021"
down_revision = "0020"

# Without a default and without an index: no row is rewritten, in no partition.
_STATEMENTS = (
    "alter table intent_events add column if not exists wrong_code smallint",
    """
    comment on column intent_events.wrong_code is
        'which entry of a code it was, if the event followed from a wrong one-time code'""",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
