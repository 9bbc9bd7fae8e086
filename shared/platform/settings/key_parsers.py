"""Parses the variables of the keys: one for each purpose, MIZAN_SECRET_KEYS for all of them, and those of a KMS."""

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

import environs
from cryptography.fernet import Fernet
from environs import validate

from shared.platform.settings.definitions import KeyPurpose, TransitSettings
from shared.platform.settings.parsers import defaults_of

FALLBACK_VARIABLE: Final = "MIZAN_SECRET_KEYS"
KEY_VARIABLES: Final[Mapping[KeyPurpose, str]] = MappingProxyType(
    {
        KeyPurpose.WEBHOOK_SECRETS: "MIZAN_WEBHOOK_SECRET_KEYS",
        KeyPurpose.PROVIDER_CREDENTIALS: "MIZAN_PROVIDER_KEYS",
        KeyPurpose.CUSTOMER_DATA: "MIZAN_CUSTOMER_KEYS",
        KeyPurpose.SESSIONS: "MIZAN_SESSION_KEYS",
    }
)
TRANSIT_VARIABLES: Final = (
    "KEY_PROVIDER",
    "TRANSIT_URL",
    "TRANSIT_TOKEN_FILE",
    "TRANSIT_MOUNT",
    "TRANSIT_KEY_PREFIX",
    "TRANSIT_NAMESPACE",
    "TRANSIT_CA_FILE",
    "TRANSIT_TIMEOUT",
    "TRANSIT_CACHE_SECONDS",
)
# Parts of the path of a request.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")
_MOUNT: Final = re.compile(r"[A-Za-z0-9_-]{1,60}(/[A-Za-z0-9_-]{1,60}){0,4}")


def parse_keys(env: environs.FileAwareEnv) -> Mapping[KeyPurpose, tuple[str, ...]]:
    return {purpose: _parse_keys(env, name) for purpose, name in KEY_VARIABLES.items()}


def parse_secret_keys(env: environs.FileAwareEnv) -> tuple[str, ...]:
    return _parse_keys(env, FALLBACK_VARIABLE)


def _parse_keys(env: environs.FileAwareEnv, name: str) -> tuple[str, ...]:
    return tuple(env.list(name, [], validate=_validate_keys) or ())


def parse_transit(env: environs.FileAwareEnv) -> TransitSettings | None:
    """Return None without TRANSIT_URL. KEY_PROVIDER says whether the KMS encrypts, or only decrypts what it did."""
    default = defaults_of(TransitSettings)
    provider = env.str("KEY_PROVIDER", "local", validate=validate.OneOf(["local", "transit"]))
    is_needed = provider == "transit"
    # Without a default where it is needed: keys of the environment must not quietly take the place of the KMS.
    url_default = {} if is_needed else {"default": ""}
    validators: list[Callable[[str], object]] = (
        [validate.Length(1), _validate_transit_url] if is_needed else [_validate_transit_url]
    )
    url = env.str("TRANSIT_URL", validate=validators, **url_default)
    token_default = {} if url else {"default": None}
    token_file = env.path("TRANSIT_TOKEN_FILE", validate=_validate_token_file, **token_default)
    ca_file = env.path("TRANSIT_CA_FILE", None, validate=_validate_ca_file)
    mount = env.str("TRANSIT_MOUNT", default.mount, validate=validate.Regexp(f"^(?:{_MOUNT.pattern})$"))
    key_prefix = env.str(
        "TRANSIT_KEY_PREFIX", default.key_prefix, validate=validate.Regexp(f"^(?:{_NAME.pattern})?$")
    )
    namespace = env.str("TRANSIT_NAMESPACE", "", validate=validate.Regexp(f"^(?:{_MOUNT.pattern}/?)?$"))
    timeout_s = env.float("TRANSIT_TIMEOUT", default.timeout_s, validate=validate.Range(0.1, 30))
    cache_s = env.float("TRANSIT_CACHE_SECONDS", default.cache_s, validate=validate.Range(1, 86_400))
    if not url or token_file is None:
        return None
    return TransitSettings(
        url=url.rstrip("/"),
        token_file=token_file,
        mount=mount,
        key_prefix=key_prefix,
        namespace=namespace or None,
        ca_file=ca_file,
        timeout_s=timeout_s,
        cache_s=cache_s,
        encrypts=is_needed,
    )


def _validate_transit_url(value: str) -> None:
    if not value:
        return
    validate.URL(schemes={"http", "https"}, require_tld=False)(value)
    parts = urlsplit(value)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise environs.ValidationError("Must have no user, no query and no fragment.")
    if parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise environs.ValidationError("Must be an https:// address, unless it is on this machine.")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _validate_token_file(path: Path | None) -> None:
    """It need not exist yet: an agent may write it."""
    if path is not None and path.name == "":
        raise environs.ValidationError("Must be the path of a file with the token for the KMS.")


def _validate_ca_file(path: Path | None) -> None:
    if path is not None and not path.is_file():
        raise environs.ValidationError("There is no such file.")


def _validate_keys(keys: list[str]) -> None:
    for key in keys:
        try:
            Fernet(key)
        except ValueError:
            # Not which one, nor its value: this text is logged.
            raise environs.ValidationError("Each must be 32 random bytes in URL-safe base64.") from None
