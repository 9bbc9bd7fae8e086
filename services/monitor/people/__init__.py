"""Operators: signing in and out, one's own account, and what operators did."""
