"""Applications: found, looked at, their webhooks paused and resumed."""
