"""Each application is test or live. Nobody is granted the right to change it.

Those that have a Plutu account take real payments, so they become live. In production all become live: one without an
account offered no payment method, and must not begin to accept test cards.

The previous version creates test applications only. The trigger keeps it from giving one a Plutu account, which new
checkouts would not use.
"""

from alembic import op

revision = "0027"
down_revision = "0026"

_COLUMN = (
    """
    alter table applications add column if not exists mode text not null default 'test'
        check (mode in ('test', 'live'))""",
    """
    comment on column applications.mode is
        'test: pays at the sandbox only; live: at the accounts of its merchant only. Never changed'""",
    "grant select (mode) on applications to mizan_checkout",
    "grant insert (mode) on applications to mizan_dashboard",
    "grant insert (mode) on applications to mizan_cli",
    """
    create or replace function check_provider_account_mode() returns trigger language plpgsql as $$
    begin
        if not exists (select from public.applications where id = new.application_id and mode = 'live') then
            raise exception 'a test application has no provider account' using errcode = 'check_violation';
        end if;
        return new;
    end $$""",
    """
    create or replace trigger provider_accounts_mode before insert on provider_accounts
        for each row when (new.adapter <> 'sandbox') execute function check_provider_account_mode()""",
)
_ALL_ARE_LIVE = "update applications set mode = 'live' where mode = 'test'"
_WITH_AN_ACCOUNT_ARE_LIVE = """
update applications set mode = 'live'
where mode = 'test' and id in (
    select application_id from provider_accounts where adapter = 'plutu' and replaced_at is null)"""


def upgrade() -> None:
    context = op.get_context()
    assert context.config is not None
    is_production = context.config.attributes.get("is_production", False)
    with context.autocommit_block():
        for statement in _COLUMN:
            op.execute(statement)
        op.execute(_ALL_ARE_LIVE if is_production else _WITH_AN_ACCOUNT_ARE_LIVE)
