"""The schema and its history: `baseline/` is where it starts, `versions/` holds Alembic's revisions.

Revisions are numbered in one line, and a released one is never edited. docs/decisions/0016-migrations.md says how to
write one.
"""
