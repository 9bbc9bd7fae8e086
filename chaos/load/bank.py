"""Late settlements: the sandbox is told that a declined charge was paid after all."""

import asyncio
import json
from random import Random
from time import time

from chaos.history import ChargeSettledLate
from chaos.load.http_client import ConnectionPool, HttpAddress, NoResponseError
from chaos.load.recorder import Recorder
from shared.platform.settings import SandboxSettings
from shared.platform.tokens import sandbox_authorization

_TRIES = 4
_OK = 200


class Bank:
    def __init__(self, sandbox: SandboxSettings, recorder: Recorder, random: Random) -> None:
        self._pool = ConnectionPool(HttpAddress.parse(sandbox.url), max_idle=2)
        self._headers = {"Authorization": sandbox_authorization(sandbox.secret)}
        self._recorder = recorder
        self._random = random
        self._unnotified: dict[str, str] = {}

    async def settle_late(self, uuid: str) -> None:
        """Settle the last declined charge of an intent as paid. Does nothing if there is none."""
        charge = await self._find_declined(uuid)
        if charge is not None:
            await self._settle(uuid, charge)

    async def notify_again(self) -> None:
        """Settle again what the product has not confirmed to have heard of.

        The sandbox gives up a notification after about half a minute without success. A bank would tell us another
        way; a second settlement changes nothing but sends another notification.
        """
        for charge, uuid in list(self._unnotified.items()):
            await self._settle(uuid, charge)

    async def _find_declined(self, uuid: str) -> str | None:
        for _ in range(_TRIES):
            try:
                response = await self._pool.request("GET", f"/charges?intent={uuid}", self._headers)
                charges = json.loads(response.body)["charges"]
            except (NoResponseError, ValueError, KeyError, TypeError):
                await self._pause()
                continue
            declined = [str(charge["id"]) for charge in charges if charge["status"] == "declined"]
            return declined[-1] if declined else None
        return None

    async def _settle(self, uuid: str, charge: str) -> None:
        for _ in range(_TRIES):
            if await self._settle_once(uuid, charge):
                return
            await self._pause()

    async def _settle_once(self, uuid: str, charge: str) -> bool:
        """Settle a charge, and return whether the sandbox has answered."""
        self._unnotified[charge] = uuid
        began_at, is_acknowledged = time(), False
        try:
            response = await self._pool.request(
                "POST",
                f"/charges/{charge}/settle",
                {"Content-Type": "application/json", **self._headers},
                json.dumps({"outcome": "paid"}).encode(),
            )
            is_acknowledged = response.status == _OK
            if is_acknowledged and json.loads(response.body).get("notified") is True:
                del self._unnotified[charge]
        except (NoResponseError, ValueError, AttributeError):
            pass
        finally:
            self._recorder.add(
                ChargeSettledLate(
                    at=time(), uuid=uuid, began_at=began_at, charge=charge, acknowledged=is_acknowledged
                )
            )
        return is_acknowledged

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.uniform(0.5, 3))

    def close(self) -> None:
        self._pool.close()
