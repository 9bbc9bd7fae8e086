"""When the password was last entered in a session, and which security changes an owner has seen."""

from alembic import op

revision = "0018"
down_revision = "0017"

_STATEMENTS = (
    "alter table sessions add column if not exists password_at timestamptz",
    """
    comment on column sessions.password_at is
        'when the password was last entered in this session; null: before this was stored'""",
    "alter table members add column if not exists changes_seen_at timestamptz",
    """
    comment on column members.changes_seen_at is
        'an owner is told of the security changes in audit_log since then; null: has not signed in yet'""",
    # Owners are told of what happens from now on.
    "update members set changes_seen_at = mizan_now() where changes_seen_at is null and joined_at is not null",
    # The actions are SECURITY_ACTIONS in shared/domain/security_changes.py. By time, because other indexes are by id:
    # PostgreSQL would take one of them for the latest changes, and read all other entries since.
    "drop index concurrently if exists audit_log_security_changes",
    """
    create index concurrently audit_log_security_changes on audit_log (merchant_id, at)
    where action in ('application_created', 'credential_issued', 'credential_revoked', 'member_created',
        'member_invited', 'member_joined', 'member_removed', 'password_changed', 'provider_set', 'role_changed',
        'webhook_secret_rolled', 'webhook_url_removed', 'webhook_url_set')""",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
