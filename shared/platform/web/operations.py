"""What those who run a service ask it: is it alive, is it ready, and its metrics."""

from collections.abc import Mapping
from pathlib import Path

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from shared.platform.metrics import exposition
from shared.platform.web.readiness import OK, Check, Readiness

OPERATIONS_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})


def operations_blueprint(checks: Mapping[str, Check], metrics_dir: Path | None) -> Blueprint:
    operations = Blueprint("operations", __name__)
    readiness = Readiness(checks)

    @operations.get("/healthz")
    def healthz() -> ResponseReturnValue:
        return {"status": "alive"}

    @operations.get("/readyz")
    def readyz() -> ResponseReturnValue:
        results = readiness.results()
        is_ready = all(result == OK for result in results.values())
        status = "ready" if is_ready else "not ready"
        return {"status": status, "checks": results}, 200 if is_ready else 503

    @operations.get("/metrics")
    def metrics() -> ResponseReturnValue:
        body, content_type = exposition(metrics_dir, request.headers.get("Accept", ""))
        return Response(body, content_type=content_type)

    @operations.after_request
    def never_cached(response: Response) -> Response:
        response.headers["Cache-Control"] = "no-store"
        return response

    return operations
