"""Signing in and out, invitations, one's own account, the team, and the audit log."""
