"""Asks each service whether it is ready: all at once, each within a short time, whatever it answers."""

import json
from collections.abc import Mapping
from time import monotonic

import pycurl

from services.monitor.inspection.snapshots import ServiceSeen

LIMIT_S = 3.0
"""For the whole of it: the checks behind an answer may take two seconds."""
_MOST_BYTES = 32 * 1024
_MOST_REASONS = 8
_LONGEST_REASON = 200
_READY = 200
_NOT_READY = 503


class _Question:
    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self.body = b""
        self.trouble: str | None = None
        self.curl = pycurl.Curl()
        for option, value in (
            (pycurl.URL, f"{url}/readyz"),
            (pycurl.TIMEOUT_MS, int(LIMIT_S * 1000)),
            (pycurl.NOSIGNAL, 1),
            (pycurl.FOLLOWLOCATION, 0),
            (pycurl.PROXY, ""),
            (pycurl.USERAGENT, "mizan-monitor"),
            (pycurl.WRITEFUNCTION, self._take),
        ):
            self.curl.setopt(option, value)

    def _take(self, data: bytes) -> int:
        """Anything but the length of it ends the transfer."""
        self.body += data
        return len(data) if len(self.body) <= _MOST_BYTES else 0

    def seen(self) -> ServiceSeen:
        status = int(self.curl.getinfo(pycurl.RESPONSE_CODE))
        is_too_long = len(self.body) > _MOST_BYTES
        is_up = status > 0 and (self.trouble is None or is_too_long)
        trouble = "its answer is too long" if is_too_long else self.trouble or ("" if status else "no answer")
        reasons = (trouble,) if trouble else reasons_in(status, self.body)
        return ServiceSeen(
            name=self.name,
            url=self.url,
            is_up=is_up,
            is_ready=is_up and not trouble and status == _READY,
            reasons=tuple(map(_shown, reasons)),
            latency_s=float(self.curl.getinfo(pycurl.TOTAL_TIME)) if is_up else None,
        )


def look_at_services(targets: Mapping[str, str]) -> tuple[ServiceSeen, ...]:
    """In the order of `targets`, which has their addresses by name."""
    questions = [_Question(name, url) for name, url in targets.items()]
    multi = pycurl.CurlMulti()
    try:
        for question in questions:
            multi.add_handle(question.curl)
        _ask(multi, questions)
        return tuple(question.seen() for question in questions)
    finally:
        for question in questions:
            multi.remove_handle(question.curl)
            question.curl.close()
        multi.close()


def _ask(multi: pycurl.CurlMulti, questions: list[_Question]) -> None:
    by_handle = {question.curl: question for question in questions}
    deadline = monotonic() + LIMIT_S + 1
    while multi.perform()[1] and monotonic() < deadline:
        multi.select(0.2)
    _, _, failed = multi.info_read()
    for curl, _, words in failed:
        by_handle[curl].trouble = words or "no answer"


def reasons_in(status: int, body: bytes) -> tuple[str, ...]:
    """Why it is not ready, by its answer, which may be of anybody and say anything."""
    if status == _READY:
        return ()
    if status != _NOT_READY:
        return (f"answered {status}",)
    try:
        checks = json.loads(body)["checks"]
        return tuple(f"{name}: {result}" for name, result in checks.items() if result != "ok")[:_MOST_REASONS]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ("answered 503",)


def _shown(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)[:_LONGEST_REASON]
