"""What people may ask of webhooks: a resend, a pause, a test."""
