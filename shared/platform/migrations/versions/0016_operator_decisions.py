"""What operators ask providers about an attempt, and decisions that wait for the approval of a second operator."""

from alembic import op

revision = "0016"
down_revision = "0015"

# There are no foreign keys to payment_attempts, as in code_challenges: adding one would lock that table, and rows are
# added while their attempt is locked. Attempts are kept for ever, and so is what operators did with them.
_STATEMENTS = (
    """
    create table if not exists operator_inquiries (
        id                  uuid primary key default uuidv7(),
        attempt_id          uuid not null,
        asked_by            text not null check (asked_by <> ''),
        operator_id         uuid references operators,
        asked_at            timestamptz not null default mizan_now(),
        answer              text check (answer in ('paid', 'declined', 'not_paid', 'unknown', 'not_supported')),
        provider_reference  text,
        answered_at         timestamptz,
        state               text,
        provider_requests   integer,
        constraint operator_inquiries_answer check (
            num_nonnulls(answer, answered_at, state, provider_requests) in (0, 4)
            and (answer is not null or provider_reference is null))
    )""",
    "comment on table operator_inquiries is 'status inquiries of operators; the verifier records the answers'",
    "comment on column operator_inquiries.asked_by is 'the name of the operator at that time, as in audit_log'",
    "comment on column operator_inquiries.operator_id is 'null: the command line'",
    "comment on column operator_inquiries.state is 'of the attempt that the answer is about; provider_requests too'",
    "create index if not exists operator_inquiries_by_attempt on operator_inquiries (attempt_id, id)",
    """
    create table if not exists decision_proposals (
        id                 uuid primary key default uuidv7(),
        attempt_id         uuid not null,
        outcome            text not null check (outcome in ('paid', 'declined')),
        reason             text not null check (reason <> ''),
        reference          text,
        state              text not null,
        provider_requests  integer not null,
        proposed_by        text not null check (proposed_by <> ''),
        proposer_id        uuid references operators,
        proposed_at        timestamptz not null default mizan_now(),
        ended_as           text check (ended_as in ('approved', 'rejected', 'outdated')),
        ended_by           text check (ended_by <> ''),
        ended_by_id        uuid references operators,
        ended_at           timestamptz,
        constraint decision_proposals_paid_has_reference check (
            outcome <> 'paid' or coalesce(reference, '') <> ''),
        constraint decision_proposals_end check (num_nonnulls(ended_as, ended_by, ended_at) in (0, 3)),
        constraint decision_proposals_four_eyes check (
            ended_as is distinct from 'approved'
            or ended_by_id is not null and ended_by_id is distinct from proposer_id and ended_by <> proposed_by)
    )""",
    "comment on table decision_proposals is 'decisions about an attempt that need the approval of a second operator'",
    "comment on column decision_proposals.state is 'of the attempt as the proposer saw it; provider_requests too'",
    "comment on column decision_proposals.proposed_by is 'the name of the operator at that time, as in audit_log'",
    "comment on column decision_proposals.proposer_id is 'null: the command line'",
    "comment on column decision_proposals.ended_as is 'outdated: the attempt had changed since'",
    """
    create unique index if not exists decision_proposals_one_open on decision_proposals (attempt_id)
        where ended_as is null""",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
