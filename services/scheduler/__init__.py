"""The clock: publishes the outbox, and does what falls due."""
