"""Builds a history by hand: an application, an intent, a payment or a delivery at a time."""

import hashlib
import hmac
import json
from collections.abc import Sequence

from chaos.history import (
    ApplicationRegistered,
    ChargeAtBank,
    CreateAnswered,
    CustomerClicked,
    DeliveryShown,
    IntentSeen,
    Record,
    RetrieveAnswered,
    TryShown,
    WebhookReceived,
)

START = 1_800_000_000.0
DAY = 86_400.0
JUMP_AT = 300.0
JUMP = 90_000.0
AMOUNT = 25_000
DELAYS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
SUCCEEDED = "payment_intent.succeeded"
CANCELED = "payment_intent.canceled"


def sign(body: str, secret: str) -> str:
    return hmac.new(secret.encode(), body.encode("latin-1"), hashlib.sha256).hexdigest()


def webhook_body(delivery: str, event: str, uuid: str) -> str:
    return json.dumps({"id": delivery, "event": event, "data": {"uuid": uuid}}, separators=(",", ":"))


class RunBuilder:
    """Adds records. Times are seconds after START."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.attempts = 0

    def add(self, record: Record) -> None:
        self.records.append(record)

    def product_time(self, at: float) -> float:
        return START + at + (JUMP if at >= JUMP_AT else 0)

    def register(self, application: str, url: str | None, secret: str, *, lives: bool = True) -> None:
        self.add(
            ApplicationRegistered(
                at=START, application=application, webhook_url=url, secret=secret, receiver_lives=lives
            )
        )

    def seen(self, uuid: str, status: str, created: float, updated: float) -> IntentSeen:
        return IntentSeen(
            uuid=uuid,
            merchant_reference=f"order-{uuid}",
            amount=AMOUNT,
            status=status,
            expires_at=self.product_time(created) + DAY,
            updated_at=self.product_time(updated),
        )

    def create(self, application: str, uuid: str, at: float, http_status: int | None = 201) -> None:
        seen = self.seen(uuid, "requires_payment_method", at, at) if http_status else None
        self.add(
            CreateAnswered(
                at=START + at + 0.1,
                began_at=START + at - 0.1,
                application=application,
                merchant_reference=f"order-{uuid}",
                amount=AMOUNT,
                http_status=http_status,
                intent=seen,
                expires_at=self.product_time(at) + DAY,
            )
        )

    def retrieve(
        self, application: str, uuid: str, at: float, seen: IntentSeen | None, http_status: int | None = 200
    ) -> None:
        self.add(
            RetrieveAnswered(
                at=START + at + 0.1,
                began_at=START + at,
                application=application,
                uuid=uuid,
                http_status=http_status,
                intent=seen,
                after_settling=at > 430,
            )
        )

    def click(self, uuid: str, at: float, page: str | None, click: str = "pay", script: str = "pays") -> None:
        self.add(
            CustomerClicked(
                at=START + at + 0.5,
                began_at=START + at,
                uuid=uuid,
                click=click,
                method="card",
                script=script,
                http_status=200 if page else None,
                page=page,
            )
        )

    def charge(self, uuid: str, status: str) -> str:
        self.attempts += 1
        name = f"attempt-{self.attempts}"
        self.add(
            ChargeAtBank(
                at=START + 435,
                charge=f"charge-{self.attempts}",
                uuid=uuid,
                attempt=name,
                amount=AMOUNT,
                method="card",
                status=status,
            )
        )
        return name

    def receive(
        self,
        application: str,
        uuid: str,
        event: str,
        at: float,
        *,
        secret: str,
        url: str,
        answer: str = "200",
    ) -> None:
        body = webhook_body(delivery_id(uuid, event), event, uuid)
        self.add(
            WebhookReceived(
                at=START + at,
                application=application,
                url=url,
                connection=7,
                signature=sign(body, secret),
                body=body,
                answer=answer,
            )
        )

    def list_delivery(
        self, application: str, uuid: str, event: str, status: str, tries: Sequence[tuple[float, str, bool]]
    ) -> None:
        """List a delivery with its tries: when each began, its result, and whether it was scheduled."""
        delivery = delivery_id(uuid, event)
        self.add(
            DeliveryShown(
                at=START + 436,
                delivery=delivery,
                application=application,
                uuid=uuid,
                event=event,
                status=status,
                scheduled_tries=sum(1 for *_, scheduled in tries if scheduled),
            )
        )
        for number, (at, result, scheduled) in enumerate(tries, 1):
            self.add(
                TryShown(
                    at=START + 436,
                    delivery=delivery,
                    number=number,
                    scheduled=scheduled,
                    began_at=self.product_time(at),
                    result=result,
                )
            )

    def deliver(
        self,
        application: str,
        uuid: str,
        event: str,
        tries: Sequence[tuple[float, str]],
        *,
        secret: str,
        url: str | None = None,
    ) -> None:
        """Receive and list a delivery without resends. Its last result decides its status."""
        for at, answer in tries:
            self.receive(
                application,
                uuid,
                event,
                at + 0.05,
                secret=secret,
                url=url or f"https://{application}.test/hook",
                answer=answer,
            )
        status = "succeeded" if tries[-1][1] == "200" else "failed"
        results = [(at, answer if answer.isdigit() else "broken_answer", True) for at, answer in tries]
        self.list_delivery(application, uuid, event, status, results)

    def pay(self, application: str, uuid: str, at: float) -> None:
        """Create an intent, and pay it two seconds later."""
        self.create(application, uuid, at)
        self.click(uuid, at + 2, "paid")
        self.charge(uuid, "paid")
        self.retrieve(application, uuid, at + 3, self.seen(uuid, "succeeded", at, at + 2.3))
        self.retrieve(application, uuid, 431, self.seen(uuid, "succeeded", at, at + 2.3))


def delivery_id(uuid: str, event: str) -> str:
    return f"delivery-{uuid}-{event.removeprefix('payment_intent.')}"
