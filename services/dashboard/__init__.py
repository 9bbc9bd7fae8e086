"""The dashboard: where a merchant's people issue credentials, set their webhook, and see every payment and delivery."""
