"""One honest look at Kafka: topics, the groups that consume them, how far they are, and whether they get on."""
