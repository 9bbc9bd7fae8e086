"""HTTP sessions that the environment cannot change."""

import requests


def open_http_session() -> requests.Session:
    """Return a session without a proxy and without credentials from the environment or a home directory."""
    session = requests.Session()
    session.trust_env = False
    return session
