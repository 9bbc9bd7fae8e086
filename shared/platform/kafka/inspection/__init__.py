"""Snapshots of Kafka: topics, the groups that consume them, their lag and their health."""
