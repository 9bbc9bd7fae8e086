"""Webhook deliveries that used up their tries: shown to operators and resent."""
