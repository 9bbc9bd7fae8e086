"""/healthz, /readyz and /metrics of every service, and the checks of /readyz, each with a time limit."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from shared.platform.database.pool import Database
from shared.platform.database.schema import check_schema
from shared.platform.metrics import render_metrics
from shared.platform.production.demo_data import DemoDataCheck
from shared.platform.redaction import redact_text
from shared.platform.settings import Environment, Settings

Check = Callable[[], None]

OPERATIONS_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
OK = "ok"
TIME_LIMIT_S = 2.0
_MAX_REASON = 200


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
        body, content_type = render_metrics(metrics_dir, request.headers.get("Accept", ""))
        return Response(body, content_type=content_type)

    @operations.after_request
    def never_cached(response: Response) -> Response:
        response.headers["Cache-Control"] = "no-store"
        return response

    return operations


class Readiness:
    """Remembers the checks that are running: one that hangs holds a single thread, however often /readyz is called."""

    def __init__(self, checks: Mapping[str, Check], time_limit_s: float = TIME_LIMIT_S) -> None:
        self._checks = dict(checks)
        self._time_limit_s = time_limit_s
        self._running: dict[str, _CheckRun] = {}
        self._lock = threading.Lock()

    def results(self) -> dict[str, str]:
        """Run all checks; return `ok` or the reason why not, by the name of the check."""
        runs = {name: self._run(name, check) for name, check in self._checks.items()}
        return {name: run.result(self._time_limit_s) for name, run in runs.items()}

    def _run(self, name: str, check: Check) -> "_CheckRun":
        with self._lock:
            run = self._running.get(name)
            if run is None or run.is_over:
                run = self._running[name] = _CheckRun(name, check)
            return run


class _CheckRun:
    def __init__(self, name: str, check: Check) -> None:
        self._check = check
        self._started = time.monotonic()
        self._over = threading.Event()
        self._outcome = OK
        threading.Thread(target=self._work, name=f"readiness-{name}", daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def result(self, time_limit_s: float) -> str:
        left = self._started + time_limit_s - time.monotonic()
        return self._outcome if self._over.wait(max(0.0, left)) else f"no answer within {time_limit_s:g} s"

    def _work(self) -> None:
        try:
            self._check()
        except BaseException as error:  # noqa: BLE001  a check fails by raising, whatever it raises
            self._outcome = _reason(error)
        finally:
            self._over.set()


def database_checks(settings: Settings, database: Database) -> dict[str, Check]:
    """Return the checks of every process with a database."""
    checks: dict[str, Check] = {"database": database.check, "schema": partial(check_schema, database)}
    if settings.environment is Environment.PRODUCTION:
        checks["demo data"] = DemoDataCheck(database).check
    return checks


def _reason(error: BaseException) -> str:
    first_line = redact_text(str(error)).strip().partition("\n")[0]
    return (first_line or type(error).__name__)[:_MAX_REASON]
