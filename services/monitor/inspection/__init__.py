"""Polls Kafka, the database and the services, and tells operators what is wrong."""
