"""What two or more services need: settings, state machine, events, outbox, Kafka loop, database, web."""
