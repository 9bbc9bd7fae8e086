"""Roles of members and the permissions of each role."""

from collections.abc import Mapping
from enum import StrEnum, auto


class Role(StrEnum):
    OWNER = "owner"
    DEVELOPER = "developer"
    VIEWER = "viewer"


class Permission(StrEnum):
    READ = auto()
    """Everything that belongs to the merchant, and one's own account."""
    RESEND = auto()
    CREDENTIALS = auto()
    """Issue and revoke API keys and access tokens."""
    WEBHOOK = auto()
    """Its URL, its secret, test deliveries."""
    APPLICATIONS = auto()
    """Create and rename them, choose payment methods and their provider accounts."""
    TEAM = auto()


ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.OWNER: frozenset(Permission),
    Role.DEVELOPER: frozenset(
        {Permission.READ, Permission.RESEND, Permission.CREDENTIALS, Permission.WEBHOOK}
    ),
    Role.VIEWER: frozenset({Permission.READ}),
}
