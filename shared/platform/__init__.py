"""What every process runs on and what knows nothing of payments: settings, database, Kafka, web, logs, tracing."""
