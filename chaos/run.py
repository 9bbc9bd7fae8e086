"""One run: the stack, the load and the faults side by side, then settling, and the judge over the history."""

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from chaos.clock import ProductClock
from chaos.fault_plan import plan_change_of_release, plan_faults
from chaos.faults import FaultInjector
from chaos.history import ApplicationRegistered, History, LoadStopped, RunStarted, read_history
from chaos.layout import WEBHOOKS_LINK
from chaos.live_line import LiveLine
from chaos.live_verdict import LiveVerdict
from chaos.load.load import Load, LoadAddresses
from chaos.proxied_connection import HOST
from chaos.releases import Release, Releases
from chaos.settling import SETTLE_SECONDS, Settling
from chaos.stack import RETRY_DELAYS, RunningStack, running_stack
from stack.keys import command_keys
from stack.options import Options
from stack.orphans import STACK_DIR_VARIABLE
from stack.programs import PROJECT, common_environment

_FAULTS_END_SECONDS = 150.0
"""How long the last faults may take to end by themselves."""


@dataclass(frozen=True)
class RunOptions:
    seconds: int
    seed: int
    rate: float
    """Orders a second."""
    has_faults: bool
    history: Path
    stack: Options
    releases: Releases | None = None
    """Two releases of the services; None: this one only."""


def run(options: RunOptions, live: LiveLine) -> bool:
    """Make one run, and write its history. Return whether everything settled in time.

    Raises StackError or LoadError if there could be no run.
    """
    history = History(options.history)
    try:
        live.note(f"Starting a stack in {options.stack.directory}")
        with running_stack(options.stack, options.releases) as stack:
            return _run_on(stack, options, history, live)
    finally:
        history.close()


def _run_on(stack: RunningStack, options: RunOptions, history: History, live: LiveLine) -> bool:
    clock = ProductClock(stack.database_url, history)
    injector = FaultInjector(stack, history, clock)
    load = Load(_addresses(stack), history, options.seed, options.rate)
    history.add(_started(options))
    load.start()
    try:
        _break_and_load(stack, options, injector, load, live)
        live.note("Load and faults are over; waiting until everything has settled")
        load.stop()
        history.add(LoadStopped(at=time.time()))
        # The previous release does not.
        asks_again = options.releases is None or options.releases.first is Release.PREVIOUS
        settling = Settling(stack.database_url, stack.sandbox, history, clock, asks_again=asks_again)
        settled = settling.wait(_dead_applications(options.history), live.show_settling)
        if settled:
            settling.wait_for_dead(live.show_settling)
        load.retrieve_all()
        settling.record_final_state()
        settling.audit({**_command_environment(stack), "STACK_DIR": str(stack.directory)})
        return settled
    finally:
        load.close()


def _break_and_load(
    stack: RunningStack, options: RunOptions, injector: FaultInjector, load: Load, live: LiveLine
) -> None:
    """Let the load run for its time, with the faults beside it. All faults are over afterwards."""
    began = time.monotonic()
    verdict = LiveVerdict(options.history)
    plan = plan_faults(options.seed, options.seconds, stack.layout.targets()) if options.has_faults else []
    if options.releases:
        changes = plan_change_of_release(options.seconds, tuple(stack.layout.halves()), len(plan) + 1)
        plan = sorted([*plan, *changes], key=lambda fault: fault.begins_at)
    faults = Thread(target=injector.run, args=(plan, began), name="faults")
    faults.start()
    try:
        while (elapsed := time.monotonic() - began) < options.seconds or faults.is_alive():
            if elapsed > options.seconds + _FAULTS_END_SECONDS:
                injector.stop()
            for name in injector.revive():
                live.note(f"{name} was down for good, so it was started again")
            live.show(elapsed, injector, load.counters(), verdict.text)
            time.sleep(1)
    finally:
        verdict.stop()
        injector.stop()
        faults.join()
        injector.heal()


def _addresses(stack: RunningStack) -> LoadAddresses:
    return LoadAddresses(
        api_url=str(stack.facts["api_base_url"]),
        checkout_url=str(stack.facts["checkout_url"]),
        sandbox=stack.sandbox,
        database_url=str(stack.facts["cli_database_url"]),
        environment={**_command_environment(stack), **command_keys(stack.options)},
        receiver_port=stack.layout.receiver_port,
        webhook_url=f"http://{HOST}:{stack.layout.link_port(WEBHOOKS_LINK)}",
    )


def _command_environment(stack: RunningStack) -> dict[str, str]:
    """Return the environment of `mizan` commands. They are not processes of the stack."""
    environment = common_environment(stack.options)
    del environment[STACK_DIR_VARIABLE]
    return environment


def _started(options: RunOptions) -> RunStarted:
    return RunStarted(
        at=time.time(),
        seed=options.seed,
        seconds=options.seconds,
        brokers=options.stack.brokers,
        retry_delays=RETRY_DELAYS,
        settle_seconds=SETTLE_SECONDS,
        commit=_commit(),
    )


def _commit() -> str:
    """Return the commit that runs, and whether files were changed; "unknown" outside of a repository."""
    changed = "+changes" if _git("status", "--porcelain", "--untracked-files=no") else ""
    return (_git("rev-parse", "HEAD") or "unknown") + changed


def _git(*arguments: str) -> str:
    command = [shutil.which("git") or "git", *arguments]
    try:
        return subprocess.run(
            command, cwd=PROJECT, capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""


def _dead_applications(history: Path) -> list[str]:
    """Return the applications whose receivers never recover."""
    registered = (record for record in read_history(history) if isinstance(record, ApplicationRegistered))
    return [record.application for record in registered if not record.receiver_lives]


def judge(history: Path) -> int:
    """Run the judge over a history, with its output on ours. Return its exit status."""
    return subprocess.run(
        [sys.executable, "-m", "chaos.judge", str(history)], cwd=PROJECT, check=False
    ).returncode
