"""The dashboard: merchants issue credentials, set their webhook, and see every payment and delivery."""
