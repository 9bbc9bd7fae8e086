"""Webhooks: signs what happened, sends it to the merchants, records and retries (§6)."""
