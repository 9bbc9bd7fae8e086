"""Kafka: clients, topic set-up, a confirming producer, and the loop that every consumer runs in."""
