"""PostgreSQL: the pool, the schema and its migrations."""
