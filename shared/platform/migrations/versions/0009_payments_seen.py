"""What people see of payments: lists with filters, and sums of a period."""

from alembic import op

revision = "0009"
down_revision = "0008"

# One index for the list of an application's intents: by status where that is asked for, and otherwise the newest of
# each status. Every create keeps it up, so there is no second one; with the amount in it, sums need no other look.
LISTS = """
create index payment_intents_by_application on payment_intents (application_id, status, uuid) include (amount);
"""

# An attempt knows its intent only. Duplicates are rare, so these few are told their application when they become
# one: whoever looks for an application's must not walk past those of all others.
DUPLICATES = """
alter table payment_attempts add column application_id uuid;
comment on column payment_attempts.application_id is 'of duplicates only, to find an application''s';

create function name_application_of_duplicate() returns trigger language plpgsql as $$
begin
    select application_id into strict new.application_id from payment_intents where uuid = new.intent_uuid;
    return new;
end $$;
create trigger payment_attempts_duplicate before insert or update of state on payment_attempts
    for each row when (new.state = 'duplicate') execute function name_application_of_duplicate();
update payment_attempts set state = state where state = 'duplicate';

create index payment_attempts_duplicates on payment_attempts (application_id, intent_uuid) where state = 'duplicate';
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (LISTS, DUPLICATES):
        connection.exec_driver_sql(statements)
