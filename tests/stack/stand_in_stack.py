"""`python -m stack` with stand-ins for the services. Tests of the whole stack run it as a process."""

import sys
from pathlib import Path

from shared.domain.kafka_principals import WEBHOOKS
from stack.launcher import run
from stack.options import read_options
from stack.services import Job, Service
from stack.startup_phases import no_demo

SERVICE = str(Path(__file__).with_name("stand_in_service.py"))
SERVICES = [
    Service("first", 1, (sys.executable, SERVICE, "first"), {"first_url": "http://127.0.0.1:{port}"}),
    Service(
        "second",
        6,
        (sys.executable, SERVICE, "second"),
        {"second_url": "http://127.0.0.1:{port}/v1"},
        kafka_principal=WEBHOOKS.name,
        database_role="mizan_api",
    ),
]
BROKEN_SERVICE = Service("broken", 2, (sys.executable, "-c", "raise SystemExit('no such setting')"))
JOBS = [Job("prepare", (sys.executable, "-c", "print('prepared')"))]
BROKEN_JOB = Job("broken-job", (sys.executable, "-c", "raise SystemExit('the schema is from the future')"))
SLOW_JOB = Job("slow-job", (sys.executable, "-c", "import time; time.sleep(600)"))

if __name__ == "__main__":
    services, jobs = list(SERVICES), list(JOBS)
    if "broken-service" in sys.argv:
        services.append(BROKEN_SERVICE)
    if "broken-job" in sys.argv:
        jobs += [BROKEN_JOB, SLOW_JOB]
    sys.exit(run(read_options(), services, jobs, no_demo))
