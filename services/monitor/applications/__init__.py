"""Applications: searched, shown, and their webhooks paused and resumed."""
