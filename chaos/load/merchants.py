"""The merchants' servers: they create and retrieve intents, and repeat creates whose answer was lost."""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from time import time
from typing import Any

from chaos.history import CreateAnswered, IntentSeen, RetrieveAnswered
from chaos.load.http_client import ConnectionPool, HttpAddress, HttpResponse, NoResponseError
from chaos.load.plans import CreateStyle, OrderPlan
from chaos.load.recorder import Recorder

_CREATE_TRIES = 8
_RETRIEVE_TRIES = 3
_PAUSE_S = (0.3, 3.0)
_OK = (200, 201)
_RETRIED = (429, 500, 502, 503, 504)
_UNPROCESSABLE = 422
_RECENT = 3000
"""Of so many intents one is retrieved now and then."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """An application of a merchant, as its server knows it."""

    application: str
    api_key: str = field(repr=False)
    access_token: str = field(repr=False)

    def headers(self) -> dict[str, str]:
        return {
            "X-API-Key": self.api_key,
            "Authorization": f"Bearer {self.access_token}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }


class Merchants:
    def __init__(self, api_url: str, recorder: Recorder) -> None:
        self._pool = ConnectionPool(HttpAddress.parse(api_url))
        self._recorder = recorder
        self._credentials: dict[str, Mapping[str, str]] = {}
        self._acknowledged: dict[str, str] = {}
        self._recent: deque[tuple[str, str]] = deque(maxlen=_RECENT)
        self._clock_offset_s = 0.0

    def add(self, credentials: Credentials) -> None:
        self._credentials[credentials.application] = credentials.headers()

    def acknowledged_intents(self) -> list[tuple[str, str]]:
        """Return the application and uuid of each intent that a create was answered with."""
        return [(application, uuid) for uuid, application in self._acknowledged.copy().items()]

    def recent_intent(self, random: Random) -> tuple[str, str] | None:
        """Return the application and uuid of one of the last intents, or None if there is none."""
        return random.choice(self._recent) if self._recent else None

    async def place_order(self, application: str, plan: OrderPlan, random: Random) -> IntentSeen | None:
        """Create the intent of an order, and return it; None if no create was answered."""
        if plan.create_style is CreateStyle.CONCURRENT:
            creates = (self.create(application, plan, amount) for amount in plan.amounts)
            answered = [seen for seen, _ in await asyncio.gather(*creates) if seen is not None]
            if answered:
                return answered[0]
        for _ in range(_CREATE_TRIES):
            seen, is_final = await self.create(application, plan, plan.amounts[0])
            if seen is not None or is_final:
                return seen
            await asyncio.sleep(random.uniform(*_PAUSE_S))
        return None

    async def repeat_order(self, application: str, plan: OrderPlan, random: Random) -> None:
        """Create the intent of an order again, after some time and with another amount."""
        await asyncio.sleep(random.uniform(0.2, 8))
        await self.create(application, plan, plan.amounts[1])

    async def create(self, application: str, plan: OrderPlan, amount: int) -> tuple[IntentSeen | None, bool]:
        """Send one create. Return the intent in its answer, and whether a repeat would be answered the same."""
        body: dict[str, object] = {
            "merchant_reference": plan.reference,
            "amount": amount,
            "currency": "LYD",
            "description": plan.scenario,
            "return_url": f"https://shop.example/orders/{plan.number}",
        }
        expires_at: float | None = None
        if plan.expires_in_s is not None:
            # Whole milliseconds, so that the history has exactly what was sent.
            expires_at = round(time() + self._clock_offset_s + plan.expires_in_s, 3)
            body["expires_at"] = datetime.fromtimestamp(expires_at, UTC).isoformat(timespec="milliseconds")
        began_at, status, seen = time(), None, None
        try:
            response = await self._pool.request(
                "POST", "/payment-intents", self._credentials[application], json.dumps(body).encode()
            )
            status, seen = response.status, _parse_intent(response)
        except NoResponseError:
            pass
        finally:
            self._recorder.add(
                CreateAnswered(
                    at=time(),
                    application=application,
                    began_at=began_at,
                    merchant_reference=plan.reference,
                    amount=amount,
                    http_status=status,
                    intent=seen,
                    expires_at=expires_at,
                )
            )
        if seen is not None:
            if seen.uuid not in self._acknowledged:
                self._recent.append((application, seen.uuid))
            self._acknowledged[seen.uuid] = application
            if status == 201:
                # A new intent was changed last when it was created: this is the product's clock.
                self._clock_offset_s = max(self._clock_offset_s, seen.updated_at - time())
        # A jump of the clock can make expires_at too early: the next try is planned with the clock as it is then.
        is_final = status is not None and status not in (*_RETRIED, _UNPROCESSABLE)
        return seen, is_final

    async def retrieve(
        self, application: str, uuid: str, *, after_settling: bool = False, tries: int = _RETRIEVE_TRIES
    ) -> IntentSeen | None:
        """Retrieve an intent, again if there is no answer. Return it, or None if there was none."""
        for number in range(tries):
            if number:
                await asyncio.sleep(1.0)
            seen = await self._retrieve_once(application, uuid, after_settling)
            if seen is not None:
                return seen
        return None

    async def _retrieve_once(self, application: str, uuid: str, after_settling: bool) -> IntentSeen | None:
        began_at, status, seen = time(), None, None
        try:
            response = await self._pool.request(
                "GET", f"/payment-intents/{uuid}", self._credentials[application]
            )
            status, seen = response.status, _parse_intent(response)
        except NoResponseError:
            pass
        finally:
            self._recorder.add(
                RetrieveAnswered(
                    at=time(),
                    application=application,
                    began_at=began_at,
                    uuid=uuid,
                    http_status=status,
                    intent=seen,
                    after_settling=after_settling,
                )
            )
        return seen

    def close(self) -> None:
        self._pool.close()


def _parse_intent(response: HttpResponse) -> IntentSeen | None:
    """Return the intent of a successful response; None if there is none that can be read."""
    if response.status not in _OK:
        return None
    try:
        data: dict[str, Any] = json.loads(response.body)["data"]
        return IntentSeen(
            uuid=data["uuid"],
            merchant_reference=data["merchant_reference"],
            amount=data["amount"],
            status=data["status"],
            expires_at=datetime.fromisoformat(data["expires_at"]).timestamp(),
            updated_at=datetime.fromisoformat(data["updated_at"]).timestamp(),
        )
    except (ValueError, KeyError, TypeError):
        return None
