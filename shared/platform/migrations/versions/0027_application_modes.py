"""Each application is test or live. Nobody is granted the right to change it.

Those that have a Plutu account take real payments, so they become live. An application that the previous version
creates during the upgrade is a test application: it cannot get a Plutu account afterwards.
"""

from alembic import op

revision = "0027"
down_revision = "0026"

_STATEMENTS = (
    """
    alter table applications add column if not exists mode text not null default 'test'
        check (mode in ('test', 'live'))""",
    """
    comment on column applications.mode is
        'test: pays at the sandbox only; live: at the accounts of its merchant only. Never changed'""",
    """
    update applications set mode = 'live'
    where mode = 'test' and id in (
        select application_id from provider_accounts where adapter = 'plutu' and replaced_at is null)""",
    "grant select (mode) on applications to mizan_checkout",
    "grant insert (mode) on applications to mizan_dashboard",
    "grant insert (mode) on applications to mizan_cli",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
