"""The JSON representation of a payment intent (§2.1): every field is always present, in this order.

The reference is generated from the annotations of these structs; encoding ignores them.
"""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from shared.domain.intents.intent import Intent
from shared.domain.intents.states import IntentStatus

Moment = Annotated[datetime, Meta(tz=True)]
Uri = Annotated[str, Meta(extra_json_schema={"format": "uri"})]
Status = Annotated[str, Meta(extra_json_schema={"enum": [state.value for state in IntentStatus]})]


class Customer(msgspec.Struct, frozen=True):
    external_id: Annotated[str | None, Meta(description="As sent; null when none was sent.")]


class PaymentIntent(msgspec.Struct, frozen=True):
    uuid: Annotated[UUID, Meta(description="Id of the intent. Store it: you need it to retrieve the intent.")]
    reference: Annotated[str, Meta(description="Our short reference, shown on the receipt in capitals.")]
    merchant_reference: Annotated[str, Meta(description="Your own reference, as given at creation.")]
    amount: Annotated[int, Meta(description="Minor units: 1000 is one dinar.")]
    currency: Annotated[str, Meta(description="ISO 4217 code. Currently `LYD` only.")]
    status: Annotated[
        Status, Meta(description="Where the intent stands. Fulfil the order only when it is `succeeded`.")
    ]
    description: Annotated[str | None, Meta(description="What the customer is paying for.")]
    customer: Annotated[Customer, Meta(description="Always an object, also when none was sent.")]
    return_url: Annotated[str | None, Meta(description="Where the checkout sends the customer back.")]
    metadata: Annotated[
        dict[str, str] | None, Meta(description="Your key-value pairs as sent; null when none were sent.")
    ]
    expires_at: Annotated[Moment, Meta(description="When the checkout stops taking payments.")]
    checkout_url: Annotated[
        Uri, Meta(description="The hosted checkout: send the customer there. Append `?lang=en` for English.")
    ]
    created_at: Annotated[Moment, Meta(description="When the intent was created.")]
    updated_at: Annotated[Moment, Meta(description="When the intent last changed.")]


class Envelope(msgspec.Struct, frozen=True):
    data: PaymentIntent


_ENCODER = msgspec.json.Encoder()


class Representation:
    def __init__(self, checkout_public_url: str) -> None:
        self._checkout = f"{checkout_public_url}/pay/"

    def encode(self, intent: Intent) -> bytes:
        return _ENCODER.encode(
            Envelope(
                PaymentIntent(
                    uuid=intent.uuid,
                    reference=intent.reference,
                    merchant_reference=intent.merchant_reference,
                    amount=intent.amount,
                    currency=intent.currency,
                    status=intent.status,
                    description=intent.description,
                    customer=Customer(intent.customer_external_id),
                    return_url=intent.return_url,
                    metadata=intent.metadata,
                    expires_at=intent.expires_at,
                    checkout_url=f"{self._checkout}{intent.uuid}",
                    created_at=intent.created_at,
                    updated_at=intent.updated_at,
                )
            )
        )
