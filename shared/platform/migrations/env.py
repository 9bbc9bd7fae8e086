"""Alembic's environment. The connection comes from runner.py, which holds the migration lock."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=True)

with context.begin_transaction():
    context.run_migrations()
