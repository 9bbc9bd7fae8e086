"""What commands that pay need of the sandbox: whether there is one and is used, and its late settlement."""

from typing import Any
from uuid import UUID

import requests
from psycopg import Connection

from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.registry import get_application
from shared.platform.errors import RefusedError
from shared.platform.http_session import open_http_session
from shared.platform.settings import Environment, SandboxSettings, Settings
from shared.platform.strict_json import InvalidJsonError, parse_json_object
from shared.platform.tokens import sandbox_authorization


class NoSandboxError(RefusedError):
    """The command would use a real provider, or there is nothing to pay with."""


class SandboxUnavailableError(RefusedError):
    """The sandbox does not respond, or not as expected."""


_TIMEOUT_S = 15


def require_sandbox(settings: Settings) -> SandboxSettings:
    """Return the settings of the sandbox. Raises NoSandboxError in production, and if there is none."""
    if settings.environment is Environment.PRODUCTION:
        raise NoSandboxError(
            "refused: this command is for development; in production, test suites use POST /pay of the sandbox"
        )
    if settings.sandbox is None:
        raise NoSandboxError("refused: this stack has no sandbox (SANDBOX_SECRET is not set)")
    return settings.sandbox


def check_is_test_application(connection: Connection[Any], application_id: UUID) -> None:
    """Raise NoSandboxError for a live application, and ApplicationNotFoundError."""
    if get_application(connection, application_id).mode is not ApplicationMode.TEST:
        raise NoSandboxError("refused: this is a live application, which takes real payments")


def find_charge(sandbox: SandboxSettings, intent: UUID) -> str | None:
    """Return the id of the intent's charge, or None. Raises SandboxUnavailableError."""
    charges: list[dict[str, Any]] = _request(sandbox, "GET", f"/charges?intent={intent}")["charges"]
    return str(charges[0]["id"]) if charges else None


def settle_as_paid(sandbox: SandboxSettings, charge: str) -> None:
    """Settle a charge late: the sandbox notifies the checkout that it was paid. Raises SandboxUnavailableError."""
    _request(sandbox, "POST", f"/charges/{charge}/settle", {"outcome": "paid"})


def _request(
    sandbox: SandboxSettings, verb: str, path: str, body: dict[str, str] | None = None
) -> dict[str, Any]:
    headers = {"Authorization": sandbox_authorization(sandbox.secret)}
    with open_http_session() as session:
        try:
            response = session.request(
                verb, f"{sandbox.url}{path}", json=body, headers=headers, timeout=_TIMEOUT_S
            )
            response.raise_for_status()
            return parse_json_object(response.content)
        except (requests.RequestException, InvalidJsonError) as error:
            problem = f"does not respond as expected ({type(error).__name__})"
            raise SandboxUnavailableError(f"the sandbox at {sandbox.url} {problem}") from None
