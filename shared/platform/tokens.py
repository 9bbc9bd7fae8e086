"""Creates API keys, access tokens, webhook secrets and invitation tokens, and hashes them for storage. Pure."""

import hashlib
import hmac
import secrets
import string

_ALPHABET = string.ascii_letters + string.digits
_LENGTH = 32  # 190 bits, out of reach of any search, so a plain fast hash is enough
_SHOWN_LENGTH = 6
WEBHOOK_SECRET_PREFIX = "whsec_"  # noqa: S105  not a secret itself
_SANDBOX_CHARGES = b"charges of the sandbox"


def new_api_key(mode: str) -> str:
    """Return a key that says whether it is for tests or for real payments: `pk_test_…`, `pk_live_…`."""
    return f"pk_{mode}_{_random()}"


def new_access_token() -> str:
    return f"at_{_random()}"


def new_webhook_secret() -> str:
    return f"{WEBHOOK_SECRET_PREFIX}{_random()}"


def new_invitation_token() -> str:
    return f"inv_{_random()}"


def sandbox_authorization(secret: str) -> str:
    """Return the header Authorization of requests for the sandbox's charges.

    Its token is derived from SANDBOX_SECRET, which signs notifications and is never sent.
    """
    return f"Bearer {hmac.new(secret.encode(), _SANDBOX_CHARGES, hashlib.sha256).hexdigest()}"


def hash_token(text: str) -> bytes:
    """Return the hash that is stored of a key or token, and looked up at every request."""
    return hashlib.sha256(text.encode()).digest()


def token_prefix(text: str) -> str:
    """Return its beginning: enough for people to recognise it, far too little to guess it."""
    kind, _, random = text.rpartition("_")
    return f"{kind}_{random[:_SHOWN_LENGTH]}"


def _random() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
