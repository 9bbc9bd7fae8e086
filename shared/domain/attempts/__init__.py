"""Attempts to pay an intent: their states, what a provider can say, and the one room that moves them."""
