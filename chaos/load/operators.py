"""The merchants' staff and operators: resends, secret rolls, URL changes, pauses and resumes.

They use the functions behind the command line and the dashboard, with the database role of the command line.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from time import monotonic, time
from typing import Any, TypeVar
from uuid import UUID, uuid4

from psycopg import Connection

from chaos.history import (
    ApplicationRegistered,
    Record,
    ResendRequested,
    SecretRolled,
    WebhooksPaused,
    WebhookUrlChanged,
)
from chaos.load.merchants import Credentials
from chaos.load.receivers import Receiver, Receivers
from chaos.load.recorder import Recorder
from chaos.load.transactions import LoadError, Transactions
from shared.domain.applications.registry import (
    CreatedApplication,
    NewApplication,
    create_application,
    set_webhook_url,
)
from shared.domain.applications.webhook_secrets import roll_webhook_secret
from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.domain.deliveries.pause import pause_webhooks, resume_webhooks
from shared.domain.deliveries.resend import request_resend
from shared.platform.encryption import SecretBox
from shared.platform.outbound_url import check_webhook_url

_T = TypeVar("_T")
_ACTOR = Actor("staff of a merchant")
_PAUSED_S = (4.0, 15.0)
_RETRY_S = 2.0


@dataclass(slots=True)
class RegisteredApplication:
    """An application of the run. Its lock is held while somebody changes it."""

    id: str
    receiver: Receiver
    url_version: int = 1
    may_be_paused: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Operators:
    def __init__(
        self,
        transactions: Transactions,
        box: SecretBox,
        receivers: Receivers,
        recorder: Recorder,
        random: Random,
    ) -> None:
        self._transactions = transactions
        self._box = box
        self._receivers = receivers
        self._recorder = recorder
        self._random = random
        self._applications: dict[str, RegisteredApplication] = {}

    async def register(self, name: str, receiver: Receiver) -> Credentials:
        """Create an application whose webhooks go to this receiver. Raises LoadError."""
        url = self._receivers.url(receiver, 1)

        def create(connection: Connection[Any]) -> CreatedApplication:
            checked = check_webhook_url(url, allow_private=True)
            made = create_application(connection, self._box, NewApplication(name, webhook_url=checked))
            _audit(connection, Action.APPLICATION_CREATED, str(made.id), name=name)
            return made

        made = await self._transactions.run(create)
        if made is None:
            raise LoadError(f"the application {name} could not be created: {self._transactions.last_problem}")
        receiver.application = str(made.id)
        self._applications[receiver.application] = RegisteredApplication(receiver.application, receiver)
        self._recorder.add(
            ApplicationRegistered(
                at=time(),
                application=receiver.application,
                webhook_url=url,
                secret=made.webhook_secret,
                receiver_lives=receiver.lives,
            )
        )
        return Credentials(receiver.application, made.api_key, made.access_token)

    async def act(self) -> None:
        """Change something of an application, chosen at random."""
        action = self._random.choice(("roll", "url", "pause"))
        free = [one for one in self._applications.values() if not one.lock.locked() and one.receiver.lives]
        if not free:
            return
        application = self._random.choice(free)
        async with application.lock:
            match action:
                case "roll":
                    await self._roll(application)
                case "url":
                    await self._change_url(application)
                case _:
                    await self._pause_for_some_time(application)

    async def resend(self, application: str, delivery: str) -> None:
        def resend(connection: Connection[Any]) -> bool:
            request_resend(connection, UUID(delivery), uuid4())
            _audit(connection, Action.DELIVERY_RESENT, application, delivery=delivery)
            return True

        began_at, done = time(), None
        try:
            done = await self._transactions.run(resend)
        finally:
            self._recorder.add(
                ResendRequested(
                    at=time(),
                    application=application,
                    began_at=began_at,
                    delivery=delivery,
                    acknowledged=done is not None,
                )
            )

    async def _roll(self, application: RegisteredApplication) -> None:
        """Roll the secret; again, until the answer with the new secret is not lost."""

        def roll(connection: Connection[Any]) -> str:
            secret = roll_webhook_secret(connection, self._box, UUID(application.id))
            _audit(connection, Action.WEBHOOK_SECRET_ROLLED, application.id, version=secret.version)
            return secret.text

        def record(began_at: float, secret: str | None) -> Record:
            return SecretRolled(at=time(), application=application.id, began_at=began_at, secret=secret)

        await self._repeat(roll, record, until=monotonic() + 60)

    async def _change_url(self, application: RegisteredApplication) -> None:
        application.url_version += 1
        url = self._receivers.url(application.receiver, application.url_version)

        def change(connection: Connection[Any]) -> bool:
            set_webhook_url(connection, UUID(application.id), check_webhook_url(url, allow_private=True))
            _audit(connection, Action.WEBHOOK_URL_SET, application.id, url=url)
            return True

        def record(began_at: float, done: bool | None) -> Record:
            return WebhookUrlChanged(
                at=time(),
                application=application.id,
                began_at=began_at,
                webhook_url=url,
                acknowledged=done is not None,
            )

        await self._repeat(change, record, until=monotonic() + 60)

    async def _pause_for_some_time(self, application: RegisteredApplication) -> None:
        application.may_be_paused = True
        await self._set_paused(application, paused=True, until=0.0)
        await asyncio.sleep(self._random.uniform(*_PAUSED_S))
        await self._resume(application, until=monotonic() + 60)

    async def _resume(self, application: RegisteredApplication, until: float) -> bool:
        is_resumed = await self._set_paused(application, paused=False, until=until)
        application.may_be_paused = application.may_be_paused and not is_resumed
        return is_resumed

    async def resume_all(self, until: float) -> None:
        """Resume the webhooks of all applications that may be paused. Raises LoadError if it is not possible."""

        async def resume(application: RegisteredApplication) -> bool:
            async with application.lock:
                return not application.may_be_paused or await self._resume(application, until)

        if not all(await asyncio.gather(*map(resume, self._applications.values()))):
            raise LoadError(f"webhooks could not be resumed: {self._transactions.last_problem}")

    async def _set_paused(self, application: RegisteredApplication, *, paused: bool, until: float) -> bool:
        change = pause_webhooks if paused else resume_webhooks

        def set_paused(connection: Connection[Any]) -> bool:
            if change(connection, UUID(application.id)):
                action = Action.WEBHOOKS_PAUSED if paused else Action.WEBHOOKS_RESUMED
                _audit(connection, action, application.id)
            return True

        def record(began_at: float, done: bool | None) -> Record:
            return WebhooksPaused(
                at=time(),
                application=application.id,
                began_at=began_at,
                paused=paused,
                acknowledged=done is not None,
            )

        return await self._repeat(set_paused, record, until=until)

    async def _repeat(
        self,
        action: Callable[[Connection[Any]], _T],
        record: Callable[[float, _T | None], Record],
        *,
        until: float,
    ) -> bool:
        """Do it at least once, and again until it is acknowledged or the time is up. Each time is recorded."""
        while True:
            began_at, done = time(), None
            try:
                done = await self._transactions.run(action)
            finally:
                self._recorder.add(record(began_at, done))
            if done is not None or monotonic() > until:
                return done is not None
            await asyncio.sleep(_RETRY_S)


def _audit(connection: Connection[Any], action: Action, application: str, **details: str | int) -> None:
    add_audit_entry(connection, _ACTOR, action, application_id=UUID(application), details=details)
