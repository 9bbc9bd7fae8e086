"""Signing in and out, one's own account, the team, and the log of what everybody did."""
