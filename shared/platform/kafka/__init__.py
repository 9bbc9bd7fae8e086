"""Kafka: clients, topics, sending with reports, and the loop that every consumer runs in."""
