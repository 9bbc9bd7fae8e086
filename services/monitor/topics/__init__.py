"""Topics, consumer groups and delay queues, with all their partitions."""
