"""The settings of the shop, from the environment, and its credentials, from a file. No other module reads them."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SECRET = re.compile("[!-~]+")


class CredentialsError(Exception):
    """The file is missing or does not contain the credentials."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets that Mizan's dashboard issues. They stay on the server: never in code, never in a browser."""

    api_key: str = field(repr=False)
    access_token: str = field(repr=False)
    webhook_secret: str = field(repr=False)
    application_id: str | None = None
    """Not a secret. With it, links lead to the very payment or delivery in the dashboard."""

    @property
    def is_test(self) -> bool:
        """Whether payments move no money."""
        return self.api_key.startswith("pk_test_")


def read_credentials(path: Path) -> Credentials:
    """Read the file at every use, so that new credentials need no restart. Raises CredentialsError."""
    try:
        known = json.loads(path.read_text())
        values = [str(known[name]) for name in ("api_key", "access_token", "webhook_secret")]
    except (OSError, ValueError, KeyError, TypeError):
        raise CredentialsError(f"cannot read credentials from {path}") from None
    if not all(_SECRET.fullmatch(value) for value in values):
        raise CredentialsError(f"a credential in {path} is empty or has other characters than visible ASCII")
    application_id = known.get("application_id")
    is_id = isinstance(application_id, str) and _UUID.fullmatch(application_id)
    return Credentials(values[0], values[1], values[2], application_id if is_id else None)


_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class SettingsError(Exception):
    """The shop cannot start with these settings. The message says what to set."""


@dataclass(frozen=True, slots=True)
class Settings:
    host: str
    port: int
    mizan_url: str
    """The base URL of Mizan's API; ends in /api/v1."""
    public_url: str
    """Where customers reach the shop. return_url is built from it, never from the Host header."""
    database: Path
    credentials_file: Path
    dashboard_url: str | None

    @property
    def is_https(self) -> bool:
        return self.public_url.startswith("https://")

    @property
    def has_admin(self) -> bool:
        """Whether the admin pages exist. They have no sign-in, so only a local shop has them."""
        return is_loopback(urlsplit(self.public_url).hostname)

    def dashboard_link(self, *path: str) -> str | None:
        """Return the address of a page of the shop's application in the dashboard, such as ("payments", uuid).

        Without the application's id in the credentials file, return that of the start page. None without a dashboard.
        """
        if self.dashboard_url is None:
            return None
        try:
            application = read_credentials(self.credentials_file).application_id
        except CredentialsError:
            application = None
        if application is None:
            return self.dashboard_url
        return "/".join((self.dashboard_url, "applications", application, *path))


def is_loopback(host: str | None) -> bool:
    return host in _LOOPBACK


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    port = environment.get("HTTP_PORT", "8008")
    mizan_url = environment.get("SHOP_MIZAN_URL", "http://127.0.0.1:8001/api/v1")
    public_url = environment.get("SHOP_PUBLIC_URL", f"http://127.0.0.1:{port}")
    wrong = []
    if environment.get("MIZAN_ENV") == "production":
        wrong.append("MIZAN_ENV is production, and this demo shop does not run there")
    if not port.isdigit():
        wrong.append("HTTP_PORT must be a number")
    if not environment.get("SHOP_CREDENTIALS_FILE"):
        wrong.append(
            "SHOP_CREDENTIALS_FILE must name a JSON file with api_key, access_token and webhook_secret"
        )
    wrong += [
        f"{name} must be an http:// or https:// address"
        for name, value in (("SHOP_MIZAN_URL", mizan_url), ("SHOP_PUBLIC_URL", public_url))
        if not value.startswith(("http://", "https://")) or not urlsplit(value).hostname
    ]
    if wrong:
        raise SettingsError("; ".join(wrong))
    return Settings(
        host=environment.get("HTTP_HOST", "127.0.0.1"),
        port=int(port),
        mizan_url=mizan_url.rstrip("/"),
        public_url=public_url.rstrip("/"),
        database=Path(environment.get("SHOP_DATABASE", "shop.sqlite")),
        credentials_file=Path(environment["SHOP_CREDENTIALS_FILE"]),
        dashboard_url=environment.get("SHOP_DASHBOARD_URL", "").rstrip("/") or None,
    )
