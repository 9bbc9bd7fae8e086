"""Mizan's API, with the credentials of the shop. Only a server may call it, never a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mizan_client import ForbiddenError, MizanClient, MizanError, NotFoundError

from .settings import CredentialsError, read_credentials

INTENT_NOT_FOUND = (ForbiddenError, NotFoundError)
"""The intent does not exist, or belongs to somebody else."""
_TIMEOUT_S = 5.0
"""Short, because a customer waits for the page. For that reason the client does not retry either: the worker does."""


class MizanUnavailableError(Exception):
    """There was no usable response. Try again later: Mizan may or may not have executed the request."""


@dataclass(frozen=True, slots=True)
class MizanApi:
    base_url: str
    credentials_file: Path

    @contextmanager
    def client(self, *handled: type[MizanError]) -> Iterator[MizanClient]:
        """Return a client with the credentials in the file, which may have changed since the last call.

        Raises MizanUnavailableError in place of all errors of the client except those that the caller handles.
        """
        try:
            credentials = read_credentials(self.credentials_file)
            with MizanClient(
                self.base_url, credentials.api_key, credentials.access_token, timeout=_TIMEOUT_S, retries=0
            ) as client:
                yield client
        except handled:
            raise
        except (CredentialsError, MizanError) as error:
            raise MizanUnavailableError(str(error)) from error


def to_timestamp(moment: datetime | None) -> float | None:
    """Return a time of an intent in seconds, as the shop stores it."""
    return None if moment is None else moment.timestamp()
