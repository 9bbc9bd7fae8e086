"""The monitor: operators see every topic and consumer, and can act."""
