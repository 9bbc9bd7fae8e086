"""Checkout: the hosted payment page, payments, payment providers, and the verification of unknown outcomes."""
