"""What Alembic runs around our revisions: the connection comes from shared.db.migrate, which holds the lock."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=True)

with context.begin_transaction():
    context.run_migrations()
