"""Who works at the command line, for the audit log."""

import getpass

from shared.domain.audit_log import Actor


def operator() -> Actor:
    try:
        account = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        account = "unknown"
    return Actor(f"operator {account}")
