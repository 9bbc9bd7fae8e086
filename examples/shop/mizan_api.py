"""Mizan's API as a shop uses it: create an intent, and retrieve it (§4). Called by servers only, never by browsers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import requests

from examples.shop.credentials import NoCredentialsError, read_credentials

_CONNECT_S, _ANSWER_S = 3.0, 8.0


class MizanAwayError(Exception):
    """No answer, or none to build on: ask again later. Whether the request was carried out is not known."""


class RefusedError(Exception):
    """Mizan will never accept this request; repeating it is of no use."""


class NoSuchIntentError(Exception):
    """There is no such intent, or it is not ours."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What the shop needs to know of one."""

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
        """May be repeated with the same merchant_reference until there is an answer: it makes one intent (§4.1)."""
        answer = self._ask("POST", "/payment-intents", body)
        if answer.status_code == 422:
            raise RefusedError(str(answer.json().get("message"))[:300])
        return self._intent(answer, {200, 201})

    def retrieve(self, uuid: str) -> Intent:
        """The source of truth for whether an order was paid (§4.2)."""
        # It came from outside: what is no uuid never becomes part of an address.
        try:
            path = f"/payment-intents/{UUID(uuid)}"
        except ValueError:
            raise NoSuchIntentError from None
        answer = self._ask("GET", path)
        if answer.status_code in {403, 404}:
            raise NoSuchIntentError
        return self._intent(answer, {200})

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> requests.Response:
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
                timeout=(_CONNECT_S, _ANSWER_S),
                allow_redirects=False,
            )
        except NoCredentialsError as error:
            raise MizanAwayError(str(error)) from error
        except requests.RequestException as error:
            raise MizanAwayError(f"Mizan does not answer: {type(error).__name__}") from error

    @staticmethod
    def _intent(answer: requests.Response, good: set[int]) -> Intent:
        if answer.status_code not in good:
            raise MizanAwayError(f"Mizan answered {answer.status_code}")
        try:
            data = answer.json()["data"]
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
            raise MizanAwayError("Mizan's answer cannot be read") from None


def _seconds(timestamp: str | None) -> float | None:
    return None if timestamp is None else datetime.fromisoformat(timestamp).timestamp()
