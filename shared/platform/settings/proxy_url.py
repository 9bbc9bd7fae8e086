"""Parses the address of a forward proxy: `http://user:password@host:port`, or `https://` for TLS with the proxy."""

import re
from ipaddress import IPv6Address
from urllib.parse import unquote, urlsplit

import environs

from shared.platform.settings.definitions import ProxySettings

_NAME = re.compile(r"(?!-)[A-Za-z0-9_.-]{1,253}")
_NOT_IN_CREDENTIALS = re.compile(r"[\x00-\x1f\x7f]")


def parse_proxy(env: environs.FileAwareEnv, name: str) -> ProxySettings | None:
    """Return None without the variable. What is wrong with it is reported by `env.seal()`."""
    url = env.str(name, "", validate=_validate)
    return parse_proxy_url(url) if url else None


def parse_proxy_url(url: str) -> ProxySettings:
    """Raises environs.ValidationError with a text that repeats nothing of the URL, which may contain a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _error("its host or port cannot be read") from None
    if parts.scheme not in ("http", "https"):
        raise _error("it must begin with http:// or https://")
    if parts.path not in ("", "/") or "?" in url or "#" in url:
        raise _error("nothing may follow the port; percent-encode special characters of the password")
    if not _is_host(host, is_in_brackets="[" in parts.netloc.rpartition("@")[2]):
        raise _error("its host cannot be read")
    if not port:
        raise _error("it must name the port")
    user, password = _credentials(parts.netloc)
    return ProxySettings(host, port, parts.scheme == "https", user, password)


def _validate(url: str) -> None:
    if url:
        parse_proxy_url(url)


def _error(text: str) -> environs.ValidationError:
    return environs.ValidationError(f"Must be http://user:password@host:port or https://…: {text}.")


def _is_host(host: str, *, is_in_brackets: bool) -> bool:
    if not is_in_brackets:
        return _NAME.fullmatch(host) is not None
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _credentials(netloc: str) -> tuple[str | None, str | None]:
    given, at, _ = netloc.rpartition("@")
    if not at:
        return None, None
    user, _, password = given.partition(":")
    user, password = unquote(user), unquote(password)
    if not user:
        raise _error("a password needs a user name")
    if ":" in user or _NOT_IN_CREDENTIALS.search(user + password):
        raise _error("its user name or password has a character that cannot be sent")
    return user, password
