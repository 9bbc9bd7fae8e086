"""Payment intents: their state machine, their events, and the only module that writes them."""
