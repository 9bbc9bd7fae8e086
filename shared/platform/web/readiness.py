"""What /readyz of every process with a database looks at."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from shared.platform.database.pool import Database
from shared.platform.database.schema import check_schema
from shared.platform.production.demo_data import DemoDataCheck
from shared.platform.redaction import redact_text
from shared.platform.settings import Environment, Settings

Check = Callable[[], None]

OK = "ok"
TIME_LIMIT_S = 2.0
_MAX_REASON = 200


class Readiness:
    """Remembers the runs under way: a check that hangs holds one thread, however often it is asked about."""

    def __init__(self, checks: Mapping[str, Check], time_limit_s: float = TIME_LIMIT_S) -> None:
        self._checks = dict(checks)
        self._time_limit_s = time_limit_s
        self._under_way: dict[str, _Run] = {}
        self._lock = threading.Lock()

    def results(self) -> dict[str, str]:
        """By name of check: `ok`, or the reason why not."""
        runs = {name: self._run(name, check) for name, check in self._checks.items()}
        return {name: run.result(self._time_limit_s) for name, run in runs.items()}

    def _run(self, name: str, check: Check) -> "_Run":
        with self._lock:
            run = self._under_way.get(name)
            if run is None or run.is_over:
                run = self._under_way[name] = _Run(name, check)
            return run


class _Run:
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
        except BaseException as error:  # noqa: BLE001  a check tells its trouble by raising, whatever it is
            self._outcome = _reason(error)
        finally:
            self._over.set()


def _reason(error: BaseException) -> str:
    first_line = redact_text(str(error)).strip().partition("\n")[0]
    return (first_line or type(error).__name__)[:_MAX_REASON]


def database_checks(settings: Settings, database: Database) -> dict[str, Check]:
    checks: dict[str, Check] = {"database": database.check, "schema": partial(check_schema, database)}
    if settings.environment is Environment.PRODUCTION:
        checks["demo data"] = DemoDataCheck(database).check
    return checks
