"""What the monitor sees of Kafka, the database and the services, looked at again and again."""
