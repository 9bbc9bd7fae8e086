"""Traces: what belongs together, from a merchant's call to the receipt of a webhook, in every process on the way."""
