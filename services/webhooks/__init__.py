"""The webhook service: signs events, sends them to merchants, records each try and retries (§6)."""
