"""The name of an application that customers see, in each language of the checkout."""

from alembic import op

revision = "0019"
down_revision = "0018"

# The length is MAX_LENGTH in shared/domain/applications/public_names.py.
_STATEMENTS = (
    """
    alter table applications
        add column if not exists public_name_ar text check (char_length(public_name_ar) between 1 and 60),
        add column if not exists public_name_en text check (char_length(public_name_en) between 1 and 60)""",
    """
    comment on column applications.public_name_ar is
        'shown to customers on Arabic pages; null: they see the name of the merchant'""",
    """
    comment on column applications.public_name_en is
        'shown to customers on English pages; null: they see the name of the merchant'""",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
