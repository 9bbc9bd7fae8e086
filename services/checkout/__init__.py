"""Customers: the hosted payment page, payment attempts, provider adapters, payment verification."""
