"""Accounts of people who sign in: members of merchants and operators, their passwords, sessions and throttling."""
