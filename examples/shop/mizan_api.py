"""A client of Mizan's API: creates and retrieves intents. Only a server may call it, never a browser."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import requests

from .settings import CredentialsError, read_credentials

_CONNECT_S, _RESPONSE_S = 3.0, 8.0


class MizanUnavailableError(Exception):
    """There was no usable response. Try again later: Mizan may or may not have executed the request."""


class IntentRefusedError(Exception):
    """Mizan rejected the request (422). Do not repeat it."""


class IntentNotFoundError(Exception):
    """The intent does not exist, or belongs to somebody else."""


@dataclass(frozen=True, slots=True)
class Intent:
    """The fields of an intent that the shop uses."""

    uuid: str
    merchant_reference: str
    amount: int
    currency: str
    status: str
    checkout_url: str
    expires_at: float | None
    updated_at: float | None


@dataclass(frozen=True, slots=True)
class MizanApi:
    base_url: str
    credentials_file: Path

    def create(self, body: Mapping[str, Any]) -> Intent:
        """Create an intent. Repeat it with the same merchant_reference until it succeeds: there is one intent.

        Raises IntentRefusedError for 422, and MizanUnavailableError without a usable response.
        """
        response = self._request("POST", "/payment-intents", body)
        if response.status_code == 422:
            raise IntentRefusedError(str(response.json().get("message"))[:300])
        return self._intent(response, {200, 201})

    def retrieve(self, uuid: str) -> Intent:
        """Return the intent, the source of truth for whether an order was paid.

        Raises IntentNotFoundError or MizanUnavailableError.
        """
        # The uuid may come from outside, so only a valid one becomes part of the URL.
        try:
            path = f"/payment-intents/{UUID(uuid)}"
        except ValueError:
            raise IntentNotFoundError from None
        response = self._request("GET", path)
        if response.status_code in {403, 404}:
            raise IntentNotFoundError
        return self._intent(response, {200})

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> requests.Response:
        try:
            credentials = read_credentials(self.credentials_file)
            headers = {
                "Accept": "application/json",
                "X-API-Key": credentials.api_key,
                "Authorization": f"Bearer {credentials.access_token}",
            }
            return requests.request(
                method,
                f"{self.base_url}{path}",
                json=body,
                headers=headers,
                timeout=(_CONNECT_S, _RESPONSE_S),
                allow_redirects=False,
            )
        except CredentialsError as error:
            raise MizanUnavailableError(str(error)) from error
        except requests.RequestException as error:
            raise MizanUnavailableError(f"Mizan does not respond: {type(error).__name__}") from error

    @staticmethod
    def _intent(response: requests.Response, expected: set[int]) -> Intent:
        if response.status_code not in expected:
            raise MizanUnavailableError(f"Mizan responded with {response.status_code}")
        try:
            data = response.json()["data"]
            return Intent(
                uuid=data["uuid"],
                merchant_reference=data["merchant_reference"],
                amount=data["amount"],
                currency=data["currency"],
                status=data["status"],
                checkout_url=data["checkout_url"],
                expires_at=_seconds(data["expires_at"]),
                updated_at=_seconds(data["updated_at"]),
            )
        except (ValueError, KeyError, TypeError):
            raise MizanUnavailableError("Mizan's response is not valid") from None


def _seconds(timestamp: str | None) -> float | None:
    return None if timestamp is None else datetime.fromisoformat(timestamp).timestamp()
