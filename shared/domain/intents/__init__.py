"""Payment intents: their states, their events, and the one room that writes them."""
