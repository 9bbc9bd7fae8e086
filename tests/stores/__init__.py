"""What happens when a store is lost: PostgreSQL restored from a backup or replaced by its standby, Kafka emptied."""
