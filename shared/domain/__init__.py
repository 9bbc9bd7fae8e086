"""Payments: intents, attempts, deliveries, dead letters, applications, accounts, the audit log, messages, topics."""
