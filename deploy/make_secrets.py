#!/usr/bin/env python3
"""Creates the secrets of an installation as files in a directory, and its keys, one file for each purpose.

Existing files stay. A secret in the environment (MIZAN_PROVIDER_KEYS, SANDBOX_SECRET, DATABASE_PASSWORD, …) is used
instead of a new one. The keys of an installation that had one key for all purposes (MIZAN_SECRET_KEYS, or the file
secret_keys) get it as their last key, which decrypts what it has encrypted.
Each principal of Kafka has a password of its own, and the brokers have a file with the two that they check themselves.
"""

import base64
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

# Containers use other accounts, and each file may be mounted alone. The directory keeps everybody else out.
MODE = 0o444
# File → the variable that it can be given by.
KEYS = {
    "webhook_secret_keys": "MIZAN_WEBHOOK_SECRET_KEYS",
    "provider_keys": "MIZAN_PROVIDER_KEYS",
    "customer_keys": "MIZAN_CUSTOMER_KEYS",
    "checkout_session_keys": "MIZAN_CHECKOUT_SESSION_KEYS",
    "dashboard_session_keys": "MIZAN_DASHBOARD_SESSION_KEYS",
    "monitor_session_keys": "MIZAN_MONITOR_SESSION_KEYS",
}

KAFKA_PASSWORDS = (
    "kafka_admin",
    "kafka_checkout_verifier",
    "kafka_webhooks",
    "kafka_scheduler",
    "kafka_monitor",
    "kafka_cli",
)
# The brokers authenticate each other, and the admin, by SASL/PLAIN: users for SCRAM are made by the admin.
JAAS = """\
client.KafkaServer {{
  org.apache.kafka.common.security.plain.PlainLoginModule required
    username="mizan-broker" password="{broker}" user_mizan-broker="{broker}" user_mizan-admin="{admin}";
  org.apache.kafka.common.security.scram.ScramLoginModule required;
}};
controller.KafkaServer {{
  org.apache.kafka.common.security.plain.PlainLoginModule required
    username="mizan-broker" password="{broker}" user_mizan-broker="{broker}";
}};
"""


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY [DIRECTORY_OF_KEYS]")
    directory = Path(sys.argv[1])
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_volume(directory) and directory.stat().st_mode & 0o077:
        sys.exit(
            f"{directory} is readable by others on this machine. Make it private first: chmod 700 {directory}"
        )
    old = _given("MIZAN_SECRET_KEYS") or _read(directory / "secret_keys")
    for name, variable in KEYS.items():
        path = Path(sys.argv[-1]) / name
        # In containers each purpose has a volume of its own, which is mounted here.
        _ensure(path / "keys" if path.is_dir() else path, variable, lambda: _new_keys(old))
    _ensure(directory / "sandbox_secret", "SANDBOX_SECRET", _new_password)
    _ensure(directory / "grafana_password", "GRAFANA_PASSWORD", _new_password)
    for name in KAFKA_PASSWORDS:
        _ensure(directory / name, "", _new_password)
    broker = _ensure(directory / "kafka_broker", "", _new_password)
    admin = (directory / "kafka_admin").read_text().strip()
    jaas = directory / "kafka_broker_jaas"
    if not jaas.exists() or jaas.read_text() != JAAS.format(broker=broker, admin=admin):
        _write(jaas, JAAS.format(broker=broker, admin=admin))
    password = _ensure(directory / "database_password", "DATABASE_PASSWORD", _new_password)
    address = directory / "database_url"
    # In production it may have been changed to another server.
    if not address.exists() or _given("DATABASE_PASSWORD"):
        _write(address, f"postgresql://mizan:{quote(password, safe='')}@postgres:5432/mizan")


def _is_volume(directory: Path) -> bool:
    """Tell whether it is a volume of containers, which accounts of this machine cannot read."""
    return directory.is_mount()


def _ensure(path: Path, name: str, new: Callable[[], str]) -> str:
    known = _read(path)
    secret = _given(name) or known or new()
    if secret != known:
        _write(path, secret)
    return secret


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _given(name: str) -> str:
    return os.environ.get(name, "").strip() if name else ""  # noqa: TID251


def _write(path: Path, text: str) -> None:
    """Write the file atomically: a killed process must not leave half a key."""
    partial = path.with_name(f".{path.name}.new")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.chmod(MODE)
    partial.replace(path)


def _new_keys(old: str) -> str:
    new = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return f"{new},{old}" if old else new


def _new_password() -> str:
    return secrets.token_urlsafe(32)


if __name__ == "__main__":
    main()
