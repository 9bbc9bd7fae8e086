"""One line for each request that was answered: what, how, how long, under which id. Never its query or body."""

import re
from typing import TYPE_CHECKING

from shared.logs import log_plainly
from shared.redaction import redact_text
from shared.web.operations import OPERATIONS_PATHS

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

LOGGER = "web.access"
_MAX_PATH = 300
# Words, a version, a uuid: nothing that could be a secret. Searching a path costs as much as a small query.
_HARMLESS_PATH = re.compile(r"(?:/(?:[a-z-]{1,30}|v\d|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))*")


def tell_request(
    environ: "WSGIEnvironment", status: str, seconds: float, request_id: str, trace_id: str | None = None
) -> None:
    path = environ.get("PATH_INFO", "")[:_MAX_PATH]
    if path in OPERATIONS_PATHS and status < "400":
        return
    log_plainly(
        LOGGER,
        "request answered",
        {
            "method": _ascii(environ["REQUEST_METHOD"])[:20],
            "path": path if _HARMLESS_PATH.fullmatch(path) else _ascii(redact_text(path)),
            "status": int(status),
            "ms": round(seconds * 1000, 1),
            "remote_addr": environ.get("REMOTE_ADDR"),
            "request_id": request_id,
            **({} if trace_id is None else {"trace_id": trace_id}),
        },
    )


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")
