"""The process behind `make run`: starts the stages in order, follows them, and stops them in reverse."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stack.banner import banner
from stack.console import Console
from stack.demo import Demo, ensure_demo, no_demo
from stack.directory_lock import lock_directory
from stack.errors import StackError
from stack.interrupted_make import InterruptedMake
from stack.jobs import run_job
from stack.leftovers import stop_leftovers
from stack.options import Options
from stack.programs import common_environment
from stack.service_ports import check_service_ports
from stack.services import JOBS, SERVICES, SHOP, Job, Service
from stack.stack_file import StackFile
from stack.stages import Engine, Stage, database_engine, kafka_engine, service_stage
from stack.stop_signals import StopRequested, finish_undisturbed, stop_signals
from stack.supervision import ProcessState, Supervision, SupervisorGoneError
from stack.watch import Watch

MakeDemo = Callable[[Path, Mapping[str, str]], Demo]
# What `mizan` has to know of the services' environment; it reads it from stack.json.
_TOLD_TO_OPERATORS = {
    "MIZAN_SECRET_KEYS_FILE": "secret_keys_file",
    "WEBHOOK_ALLOW_PRIVATE": "webhook_allow_private",
    "SANDBOX_SECRET_FILE": "sandbox_secret_file",
}


def run(
    options: Options,
    services: Sequence[Service] = (*SERVICES, SHOP),
    jobs: Sequence[Job] = JOBS,
    make_demo: MakeDemo = ensure_demo,
) -> int:
    """Run a stack until somebody stops it; returns the exit status."""
    console = Console(colour=options.colour)
    try:
        with stop_signals(), lock_directory(options.directory, os.getpid()):
            wanted = [service for service in services if service.in_production or not options.is_production]
            Front(options, wanted, jobs, no_demo if options.is_production else make_demo, console).run()
    except StopRequested:
        return 0
    except StackError as error:
        console.complain(error)
        return 1
    return 0


class Front:
    """One run of the stack in one directory."""

    def __init__(
        self,
        options: Options,
        services: Sequence[Service],
        jobs: Sequence[Job],
        make_demo: MakeDemo,
        console: Console,
    ) -> None:
        self._options = options
        self._services = services
        self._jobs = jobs
        self._make_demo = make_demo
        self._console = console
        self._logs = options.directory / "logs"
        self._stack_file = StackFile(options)
        self._make = InterruptedMake()
        self._supervision: Supervision | None = None
        self._started: list[Stage] = []
        self._began = time.monotonic()

    def run(self) -> None:
        self._stack_file.remove()
        stop_leftovers(self._options.directory, self._console.say)
        check_service_ports(self._services, self._options.port_base)
        try:
            self._start_and_follow()
        except SupervisorGoneError:
            raise StackError(
                "supervisord, which watches over the processes, has died; everything was stopped.",
                f"Start again. Its log is {self._logs / 'supervisor.log'}.",
            ) from None
        finally:
            finish_undisturbed()
            self._stop()

    def _start_and_follow(self) -> None:
        database, kafka = database_engine(self._options), kafka_engine(self._options)
        for note in (*database.notes, *kafka.notes):
            self._console.say(note)
        engine_stages = [engine.stage for engine in (database, kafka) if engine.stage]
        services = service_stage(self._services, self._options)
        environment = common_environment(self._options, database.address, kafka.address)
        supervision = self._supervise([*engine_stages, services], environment)
        for stage in engine_stages:
            self._start(stage, supervision)
        for job in self._jobs:
            run_job(job, environment, self._logs / f"{job.name}.log")
            self._console.say(f"{job.name} done")
        demo = self._make_demo(self._options.directory, environment)
        self._start(services, supervision)
        stages = [*engine_stages, services]
        self._follow(supervision, stages, self._addresses(database, kafka), environment, demo)

    def _supervise(self, stages: Sequence[Stage], environment: Mapping[str, str]) -> Supervision:
        programs = [program for stage in stages for program in stage.programs]
        self._console.name_processes(program.name for program in programs)
        self._supervision = Supervision(
            programs, environment, directory=self._options.directory, logs=self._logs
        )
        self._supervision.wait_ready()
        return self._supervision

    def _start(self, stage: Stage, supervision: Supervision) -> None:
        began = time.monotonic()
        self._started.append(stage)
        running = {program.name: supervision.start(program.name) for program in stage.programs}
        for program in stage.programs:
            stage.wait_ready(program, self._logs / f"{program.name}.log", running[program.name])
        self._console.say(f"{stage.title} ready in {time.monotonic() - began:.1f} s")

    def _addresses(self, database: Engine, kafka: Engine) -> dict[str, str]:
        addresses: dict[str, str] = {}
        for service in self._services:
            addresses |= service.addresses(self._options.port_base)
        return addresses | {"database_url": database.address, "kafka_bootstrap_servers": kafka.address}

    def _follow(
        self,
        supervision: Supervision,
        stages: Sequence[Stage],
        addresses: Mapping[str, str],
        environment: Mapping[str, str],
        demo: Demo,
    ) -> None:
        for_operators = {
            key: environment[name] for name, key in _TOLD_TO_OPERATORS.items() if name in environment
        }

        def write_pids(states: Mapping[str, ProcessState]) -> None:
            pids = {name: state.pid for name, state in states.items() if state.pid}
            own = {"supervisor": supervision.pid, "stack": os.getpid()}
            self._stack_file.write({**addresses, **for_operators}, {**pids, **own}, demo)

        programs = [program for stage in stages for program in stage.programs]
        seconds = time.monotonic() - self._began
        self._console.show(banner(addresses, demo, self._stack_file.path, self._logs, seconds))
        # Writes the file, for which scripts wait: whoever sees it can count on all before it.
        watch = Watch(supervision, programs, self._logs, self._console, write_pids)
        watch.follow(self._make.happened)

    def _stop(self) -> None:
        self._stack_file.remove()
        if self._supervision is not None:
            try:
                self._stop_in_order(self._supervision)
            except SupervisorGoneError:
                self._console.shout("supervisord does not answer; stopping its processes one by one")
            self._supervision.shut_down()
        stop_leftovers(self._options.directory, self._console.say)
        self._console.say("Everything is stopped")

    def _stop_in_order(self, supervision: Supervision) -> None:
        programs = [program for stage in self._started for program in stage.programs]
        for group in dict.fromkeys(program.group for program in reversed(programs)):
            self._console.say(f"Stopping {group}")
            supervision.stop_group(group)
