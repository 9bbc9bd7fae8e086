"""What the webhook service adds: the last answer of a delivery, pauses, and when something was put back on its way."""

from alembic import op

revision = "0005"
down_revision = "0004"

COLUMNS = """
alter table applications add column webhooks_paused_at timestamptz;
comment on column applications.webhooks_paused_at is 'an operator has paused its webhooks; what is due is parked';

alter table webhook_deliveries
    add column last_status_code integer,
    add column last_failure text,
    add column redriven_at timestamptz,
    add column parked_at timestamptz;
comment on column webhook_deliveries.last_failure is
    'how the last try failed where there was no answer, or no_url: the application''s URL was removed';
comment on column webhook_deliveries.redriven_at is 'when it was last put back on webhooks.deliver, being overdue';
comment on column webhook_deliveries.parked_at is 'it fell due while its application was paused';
create index webhook_deliveries_parked on webhook_deliveries (application_id, id) where parked_at is not null;

-- The status is not named in the index, for a statement that asks for what is pending among some ids would be led to
-- read all that is.
alter table webhook_deliveries add constraint webhook_deliveries_due_while_pending
    check ((status = 'pending') = (next_due_at is not null));
drop index webhook_deliveries_overdue;
create index webhook_deliveries_overdue on webhook_deliveries (next_due_at, id) where next_due_at is not null;

alter table intent_events add column republished_at timestamptz;
comment on column intent_events.republished_at is 'when it was last published again, not having been taken in';
"""

# The encoders of shared.domain.messages.DeliveryDue and ResendRequested, for statements that write outbox rows.
MESSAGES = """
create function delivery_due_message(id uuid, application_id uuid, step integer, due_at timestamptz) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'delivery_due.v1', 'id', id, 'application_id', application_id,
                             'step', step, 'due_at', due_at)::text;

create function resend_requested_message(id uuid, delivery_id uuid, application_id uuid) returns text
    language sql stable parallel safe
    return json_build_object('kind', 'resend_requested.v1', 'id', id, 'delivery_id', delivery_id,
                             'application_id', application_id)::text;
"""


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for statements in (COLUMNS, MESSAGES):
        connection.exec_driver_sql(statements)
