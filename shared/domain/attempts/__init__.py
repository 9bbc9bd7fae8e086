"""Payment attempts: their state machine, how they start and settle, and what operators decide about them."""
