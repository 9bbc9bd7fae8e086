"""The request of a try (§2.2, §6.3, §6.4): its body, its headers, and the signature over exactly these bytes."""

import hmac

CONTENT_TYPE = "application/json"
SIGNATURE_HEADER = "Service-Signature"
USER_AGENT = "Mizan"


def build_body(delivery_id: str, event: str, intent_uuid: str) -> bytes:
    """Ids and event names have no character that JSON would escape."""
    return f'{{"id":"{delivery_id}","event":"{event}","data":{{"uuid":"{intent_uuid}"}}}}'.encode()


def signing_key(secret: str) -> hmac.HMAC:
    """Of the whole secret, with its prefix. Made once and copied: that is four times as fast as beginning anew."""
    return hmac.new(secret.encode(), digestmod="sha256")


def sign_body(body: bytes, key: hmac.HMAC) -> str:
    signing = key.copy()
    signing.update(body)
    return signing.hexdigest()
