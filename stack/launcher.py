"""The process behind `make run`: starts the phases in order, follows the processes, and stops them in reverse order."""

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from shared.platform.database.roles import CLI
from shared.platform.settings import TRANSIT_VARIABLES
from stack.database_roles import RoleUrls
from stack.errors import StackError
from stack.kafka_passwords import kafka_client_settings
from stack.keys import OLD_FILE, command_keys
from stack.options import Options
from stack.orphans import stop_orphans
from stack.output import Console, banner
from stack.ports import check_service_ports
from stack.process_follower import ProcessFollower
from stack.programs import common_environment, kafka_environment
from stack.services import JOBS, SERVICES, SHOP, Job, Service
from stack.startup_phases import (
    Demo,
    Engine,
    StartupPhase,
    ensure_demo,
    no_demo,
    prepare_database,
    prepare_kafka,
    services_phase,
    started_job,
    wait_for_job,
)
from stack.state_directory import StackFile, lock_directory
from stack.stop_signals import MakeInterrupt, StopRequested, ignore_stop_signals, stop_signals
from stack.supervisor import ProcessState, Supervisor, SupervisorGoneError

MakeDemo = Callable[[Path, Mapping[str, str]], Demo]
# Settings of the services that the command `mizan` reads from stack.json.
_SETTINGS_FOR_COMMANDS = {
    "MIZAN_SECRET_KEYS_FILE": "secret_keys_file",
    "MIZAN_WEBHOOK_SECRET_KEYS_FILE": "webhook_secret_keys_file",
    "MIZAN_PROVIDER_KEYS_FILE": "provider_keys_file",
    "MIZAN_CUSTOMER_KEYS_FILE": "customer_keys_file",
    **{name: name.lower() for name in TRANSIT_VARIABLES},
    "API_PUBLIC_URL": "api_public_url",
    "CHECKOUT_PUBLIC_URL": "checkout_public_url",
    "WEBHOOK_ALLOW_PRIVATE": "webhook_allow_private",
    "SANDBOX_SECRET_FILE": "sandbox_secret_file",
}
_OLD_KEY_NOTE = (
    f"{OLD_FILE}, the one key of earlier versions, is still read. To drop it: bin/mizan keys reseal, remove the file, "
    "start again"
)


def run(
    options: Options,
    services: Sequence[Service] = (*SERVICES, SHOP),
    jobs: Sequence[Job] = JOBS,
    make_demo: MakeDemo = ensure_demo,
) -> int:
    """Run a stack until it is stopped. Return the exit status."""
    console = Console(colour=options.colour)
    try:
        with stop_signals(), lock_directory(options.directory, os.getpid()):
            enabled = [service for service in services if service.in_production or not options.is_production]
            Launcher(options, enabled, jobs, no_demo if options.is_production else make_demo, console).run()
    except StopRequested:
        return 0
    except StackError as error:
        console.print_error(error)
        return 1
    return 0


class Launcher:
    """One run of the stack in one state directory."""

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
        self._make = MakeInterrupt()
        self._supervisor: Supervisor | None = None
        self._started: list[StartupPhase] = []
        self._began = time.monotonic()

    def run(self) -> None:
        self._stack_file.remove()
        stop_orphans(self._options.directory, self._console.info)
        check_service_ports(self._services, self._options.port_base)
        try:
            self._start_and_follow()
        except SupervisorGoneError:
            raise StackError(
                "supervisord, which supervises the processes, has died; everything was stopped.",
                f"Start again. Its log is in {self._logs / 'supervisor.log'}.",
            ) from None
        finally:
            ignore_stop_signals()
            self._stop()

    def _start_and_follow(self) -> None:
        (database, urls), kafka = prepare_database(self._options), prepare_kafka(self._options)
        if (self._options.directory / OLD_FILE).exists():
            self._console.info(_OLD_KEY_NOTE)
        for note in (*database.notes, *kafka.notes):
            self._console.info(note)
        engine_phases = [engine.phase for engine in (database, kafka) if engine.phase]
        services = services_phase(self._services, self._options, urls, kafka)
        environment = common_environment(self._options)
        supervisor = self._supervise([*engine_phases, services], environment)
        for_commands = {**environment, **urls.environment(CLI), **command_keys(self._options)}
        demo = self._start_engines(database, kafka, urls, for_commands, supervisor)
        self._start(services, supervisor)()
        phases = [*engine_phases, services]
        entries = {
            **{
                key: for_commands[name]
                for name, key in _SETTINGS_FOR_COMMANDS.items()
                if name in for_commands
            },
            **kafka_client_settings(kafka.logins),
        }
        with ExitStack() as running:
            if kafka.later:
                running.enter_context(started_job(kafka.later, environment, self._log(kafka.later.name)))
            self._follow(supervisor, phases, self._addresses(database, kafka, urls), entries, demo)

    def _start_engines(
        self,
        database: Engine,
        kafka: Engine,
        urls: RoleUrls,
        environment: Mapping[str, str],
        supervisor: Supervisor,
    ) -> Demo:
        """Start both engines at once, and each job when its engine is ready. Return the demo application."""
        wait_for_database, wait_for_kafka = (
            self._start(engine.phase, supervisor) for engine in (database, kafka)
        )
        with ExitStack() as started:

            def start_jobs(jobs: Iterable[Job]) -> dict[str, subprocess.Popen[bytes]]:
                processes = {}
                for job in jobs:
                    own = {
                        **common_environment(self._options),
                        **urls.environment(job.database_role),
                        **kafka_environment(self._options, kafka.address, kafka.logins, job.kafka_principal),
                    }
                    processes[job.name] = started.enter_context(started_job(job, own, self._log(job.name)))
                return processes

            wait_for_database()
            on_database = start_jobs(job for job in self._jobs if not job.kafka_principal)
            wait_for_kafka()
            on_kafka = start_jobs(job for job in self._jobs if job.kafka_principal)
            self._wait_for_jobs(on_database)
            demo = self._make_demo(self._options.directory, environment)
            self._wait_for_jobs(on_kafka)
        return demo

    def _wait_for_jobs(self, processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
        for name, process in processes.items():
            wait_for_job(name, process, self._log(name))
            self._console.info(f"{name} done")

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _supervise(self, phases: Sequence[StartupPhase], environment: Mapping[str, str]) -> Supervisor:
        programs = [program for phase in phases for program in phase.programs]
        self._console.name_processes(program.name for program in programs)
        self._supervisor = Supervisor(
            programs, environment, directory=self._options.directory, logs=self._logs
        )
        self._supervisor.wait_ready()
        return self._supervisor

    def _start(self, phase: StartupPhase | None, supervisor: Supervisor) -> Callable[[], None]:
        """Start the programs of a phase. Return the function that waits until they are ready."""
        if phase is None:
            return lambda: None
        began = time.monotonic()
        self._started.append(phase)
        running = {program.name: supervisor.start(program.name) for program in phase.programs}

        def wait() -> None:
            for program in phase.programs:
                phase.wait_ready(program, self._log(program.name), running[program.name])
            self._console.info(f"{phase.title} ready in {time.monotonic() - began:.1f} s")

        return wait

    def _addresses(self, database: Engine, kafka: Engine, urls: RoleUrls) -> dict[str, str]:
        addresses: dict[str, str] = {}
        for service in self._services:
            addresses |= service.addresses(self._options.port_base)
        return addresses | {
            "database_url": database.address,
            "cli_database_url": urls.urls[CLI],
            "kafka_bootstrap_servers": kafka.address,
        }

    def _follow(
        self,
        supervisor: Supervisor,
        phases: Sequence[StartupPhase],
        addresses: Mapping[str, str],
        entries: Mapping[str, Any],
        demo: Demo,
    ) -> None:

        def write_pids(states: Mapping[str, ProcessState]) -> None:
            pids = {name: state.pid for name, state in states.items() if state.pid}
            own = {"supervisor": supervisor.pid, "stack": os.getpid()}
            self._stack_file.write({**addresses, **entries}, {**pids, **own}, demo)

        programs = [program for phase in phases for program in phase.programs]
        seconds = time.monotonic() - self._began
        self._console.print(banner(addresses, demo, self._stack_file.path, self._logs, seconds))
        # Writes stack.json, which scripts wait for. Everything before it is done by then.
        watch = ProcessFollower(supervisor, programs, self._logs, self._console, write_pids)
        watch.follow(self._make.received)

    def _stop(self) -> None:
        self._stack_file.remove()
        if self._supervisor is not None:
            try:
                self._stop_in_order(self._supervisor)
            except SupervisorGoneError:
                self._console.warn("supervisord does not respond; stopping its processes one by one")
            self._supervisor.shut_down()
        stop_orphans(self._options.directory, self._console.info)
        self._console.info("Everything is stopped")

    def _stop_in_order(self, supervisor: Supervisor) -> None:
        programs = [program for phase in self._started for program in phase.programs]
        for group in dict.fromkeys(program.group for program in reversed(programs)):
            self._console.info(f"Stopping {group}")
            supervisor.stop_group(group)
