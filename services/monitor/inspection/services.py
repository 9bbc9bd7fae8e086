"""Checks the readiness of all services at once, each with a short timeout."""

from collections.abc import Mapping
from time import monotonic

import pycurl

from services.monitor.inspection.snapshots import ServiceStatus
from shared.platform.strict_json import InvalidJsonError, parse_json_object

TIMEOUT_S = 3.0
"""For a whole request. The checks behind a response can take two seconds."""
_MAX_BYTES = 32 * 1024
_MAX_REASONS = 8
_MAX_REASON_LENGTH = 200
_READY = 200
_NOT_READY = 503


class _ReadinessRequest:
    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self.body = b""
        self.error: str | None = None
        self.curl = pycurl.Curl()
        for option, value in (
            (pycurl.URL, f"{url}/readyz"),
            (pycurl.TIMEOUT_MS, int(TIMEOUT_S * 1000)),
            (pycurl.NOSIGNAL, 1),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PROXY, ""),
            (pycurl.USERAGENT, "mizan-monitor"),
            (pycurl.WRITEFUNCTION, self._receive),
        ):
            self.curl.setopt(option, value)

    def _receive(self, data: bytes) -> int:
        """Keep the data. Returning anything but its length makes libcurl end the transfer."""
        self.body += data
        return len(data) if len(self.body) <= _MAX_BYTES else 0

    def service_status(self) -> ServiceStatus:
        status = int(self.curl.getinfo(pycurl.RESPONSE_CODE))
        is_too_long = len(self.body) > _MAX_BYTES
        is_up = status > 0 and (self.error is None or is_too_long)
        error = "response too long" if is_too_long else self.error or ("" if status else "no response")
        reasons = (error,) if error else parse_reasons(status, self.body)
        return ServiceStatus(
            name=self.name,
            url=self.url,
            is_up=is_up,
            is_ready=is_up and not error and status == _READY,
            reasons=tuple(map(_printable, reasons)),
            latency_s=float(self.curl.getinfo(pycurl.TOTAL_TIME)) if is_up else None,
        )


def check_services(targets: Mapping[str, str]) -> tuple[ServiceStatus, ...]:
    """Return the status of each service, in the order of `targets`, which maps names to base URLs."""
    requests = [_ReadinessRequest(name, url) for name, url in targets.items()]
    multi = pycurl.CurlMulti()
    try:
        for request in requests:
            multi.add_handle(request.curl)
        _perform(multi, requests)
        return tuple(request.service_status() for request in requests)
    finally:
        for request in requests:
            multi.remove_handle(request.curl)
            request.curl.close()
        multi.close()


def _perform(multi: pycurl.CurlMulti, requests: list[_ReadinessRequest]) -> None:
    by_handle = {request.curl: request for request in requests}
    deadline = monotonic() + TIMEOUT_S + 1
    while multi.perform()[1] and monotonic() < deadline:
        multi.select(0.2)
    _, _, failed = multi.info_read()
    for curl, _, message in failed:
        by_handle[curl].error = message or "no response"


def parse_reasons(status: int, body: bytes) -> tuple[str, ...]:
    """Return why a service is not ready, from its response. The response can contain anything."""
    if status == _READY:
        return ()
    if status != _NOT_READY:
        return (f"status {status}",)
    try:
        checks = parse_json_object(body)["checks"]
        return tuple(f"{name}: {result}" for name, result in checks.items() if result != "ok")[:_MAX_REASONS]
    except (InvalidJsonError, KeyError, AttributeError):
        return ("status 503",)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)[:_MAX_REASON_LENGTH]
