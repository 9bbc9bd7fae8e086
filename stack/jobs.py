"""One-shot jobs between the engines and the services: run to their end, their output kept in a log file."""

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from shared.platform.process import EX_CONFIG
from stack.errors import StackError
from stack.family import family_of, send
from stack.programs import PROJECT
from stack.services import Job


def run_job(job: Job, environment: Mapping[str, str], log: Path) -> None:
    with log.open("wb") as output:
        process = subprocess.Popen(
            job.command,
            env=dict(environment),
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        status = process.wait()
    except BaseException:
        send(signal.SIGKILL, family_of(process.pid))
        process.wait()
        raise
    if status == EX_CONFIG:
        raise StackError(
            log.read_text(errors="replace").strip(),
            "Put these right in the environment, and start again.",
        )
    if status != 0:
        output_text = log.read_text(errors="replace").strip()
        raise StackError(
            f"{job.name} failed with exit status {status}. It said:\n{output_text}",
            f"Run it by itself once the cause is removed, or start again. Its output is in {log}.",
        )
