"""People who sign in: members of merchants, their passwords, sessions and invitations."""
