"""The embedded local stack: real PostgreSQL and real Apache Kafka from pip alone, and the services on it."""
