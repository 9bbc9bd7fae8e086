"""Webhook deliveries: signing, results of tries, pause, resend, and deliveries whose tries are exhausted."""
