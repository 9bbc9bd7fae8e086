"""The technical base of every process, without payments: settings, database, Kafka, web, logs, tracing, start-up."""
