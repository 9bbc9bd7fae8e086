"""Stores whether the provider or an operator supplied an attempt's reference."""

from alembic import op

revision = "0013"
down_revision = "0012"

_ADD_COLUMN = """
alter table payment_attempts add column if not exists reference_from_operator boolean not null default false"""
_COMMENT = """
comment on column payment_attempts.reference_from_operator is
    'an operator typed provider_reference; the provider''s own reference replaces it'"""
# A reference that an operator typed, and that was not replaced since.
_MARK_DECIDED = """
update payment_attempts as t set reference_from_operator = true
from audit_log as l
where l.action = 'attempt_decided' and l.details ->> 'attempt' = t.id::text
  and l.details ->> 'reference' = t.provider_reference and not t.reference_from_operator"""


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in (_ADD_COLUMN, _COMMENT, _MARK_DECIDED):
            op.execute(statement)
