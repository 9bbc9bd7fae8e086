"""Operators: signing in and out, their account, and the audit log."""
