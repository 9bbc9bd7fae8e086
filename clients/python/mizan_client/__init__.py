"""Client of the Mizan API, for merchants' servers."""

from .client import MizanClient
from .errors import (
    ApiConnectionError,
    ApiError,
    AuthenticationError,
    ForbiddenError,
    InvalidRequestError,
    InvalidWebhookError,
    MizanError,
    NotFoundError,
    RateLimitedError,
    ServerError,
    SignatureError,
)
from .payment_intent import Customer, PaymentIntent
from .version import VERSION
from .webhooks import WebhookEvent, verify_webhook

__version__ = VERSION

__all__ = [
    "ApiConnectionError",
    "ApiError",
    "AuthenticationError",
    "Customer",
    "ForbiddenError",
    "InvalidRequestError",
    "InvalidWebhookError",
    "MizanClient",
    "MizanError",
    "NotFoundError",
    "PaymentIntent",
    "RateLimitedError",
    "ServerError",
    "SignatureError",
    "WebhookEvent",
    "__version__",
    "verify_webhook",
]
