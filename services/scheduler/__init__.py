"""The scheduler: publishes the outbox and runs everything that falls due."""
