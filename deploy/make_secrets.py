#!/usr/bin/env python3
"""Creates the secrets of an installation as files in a directory.

Existing files stay. A secret in the environment (MIZAN_PROVIDER_KEYS, SANDBOX_SECRET, DATABASE_PASSWORD, …) is used
instead of a new one. There is a file of keys for each purpose. An installation that had one key for all purposes
(MIZAN_SECRET_KEYS, or the file secret_keys) gets it as the last key of each, which decrypts what it has encrypted.
Each service gets an address of the database with a login of its own. Each principal of Kafka has a password of its own,
and the brokers have a file with the two that they check themselves.
With a second argument, each service also gets a directory below it, with the files that it needs and no others.
"""

import base64
import json
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

OWNER = "mizan_owner"
ROLES = ("api", "checkout", "webhooks", "scheduler", "dashboard", "monitor", "cli")
"""Each connects as the role mizan_…; the owner runs the migrations."""

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


def _files(*names: str, role: str | None = None) -> dict[str, str]:
    """Return where each file of a service comes from. All services find their own login in `database_url`."""
    login = {} if role is None else {"database_url": f"database_url_{role}"}
    return {**login, **{name: name for name in names}}


# The directory of a service: its files, and where each comes from.
FILES = {
    "api": _files(role="api"),
    "checkout": _files(
        "provider_keys", "customer_keys", "checkout_session_keys", "sandbox_secret", role="checkout"
    ),
    "checkout-verifier": _files(
        "provider_keys", "customer_keys", "kafka_checkout_verifier", "sandbox_secret", role="checkout"
    ),
    "dashboard": _files("webhook_secret_keys", "provider_keys", "dashboard_session_keys", role="dashboard"),
    "webhooks": _files("webhook_secret_keys", "kafka_webhooks", role="webhooks"),
    "scheduler": _files("kafka_scheduler", role="scheduler"),
    "monitor": _files("monitor_session_keys", "kafka_monitor", role="monitor"),
    "cli": _files("webhook_secret_keys", "provider_keys", "kafka_cli", "sandbox_secret", role="cli"),
    "migrate": _files("database_url"),
    "roles": _files("database_admin_url", "role_passwords"),
    "topics": _files(*KAFKA_PASSWORDS),
    "sandbox": _files("sandbox_secret"),
    "postgres": _files("database_password"),
    "kafka": _files("kafka_broker_jaas"),
    "grafana": _files("grafana_password"),
}


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} DIRECTORY [DIRECTORY_OF_SERVICES]")
    directory = Path(sys.argv[1])
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_volume(directory) and directory.stat().st_mode & 0o077:
        sys.exit(
            f"{directory} is readable by others on this machine. Make it private first: chmod 700 {directory}"
        )
    old = _given("MIZAN_SECRET_KEYS") or _read(directory / "secret_keys")
    for name, variable in KEYS.items():
        _ensure(directory / name, variable, lambda: _new_keys(old))
    _ensure(directory / "sandbox_secret", "SANDBOX_SECRET", _new_password)
    _ensure(directory / "grafana_password", "GRAFANA_PASSWORD", _new_password)
    _make_kafka_passwords(directory)
    password = _ensure(directory / "database_password", "DATABASE_PASSWORD", _new_password)
    _make_database_urls(directory, password)
    if len(sys.argv) == 3:
        _share(directory, Path(sys.argv[2]))


def _make_kafka_passwords(directory: Path) -> None:
    for name in KAFKA_PASSWORDS:
        _ensure(directory / name, "", _new_password)
    broker = _ensure(directory / "kafka_broker", "", _new_password)
    admin = (directory / "kafka_admin").read_text().strip()
    jaas = directory / "kafka_broker_jaas"
    if not jaas.exists() or jaas.read_text() != JAAS.format(broker=broker, admin=admin):
        _write(jaas, JAAS.format(broker=broker, admin=admin))


def _make_database_urls(directory: Path, password: str) -> None:
    """Write the address of the administrator and of each role.

    Before roles existed, database_url was the administrator's. In production it may have been changed to another
    server: the roles' addresses are like it, with other logins.
    """
    admin, owner = directory / "database_admin_url", directory / "database_url"
    if not admin.exists() and owner.exists() and f"//{OWNER}:" not in owner.read_text():
        _write(admin, owner.read_text().strip())
        owner.unlink()
    if not admin.exists() or _given("DATABASE_PASSWORD"):
        _write(admin, f"postgresql://mizan:{quote(password, safe='')}@postgres:5432/mizan")
    stored = directory / "role_passwords"
    known: dict[str, str] = json.loads(stored.read_text()) if stored.exists() else {}
    roles = {OWNER: owner, **{f"mizan_{name}": directory / f"database_url_{name}" for name in ROLES}}
    passwords = {role: known.get(role) or _new_password() for role in roles}
    if passwords != known:
        _write(stored, json.dumps(passwords, indent=2))
    for role, path in roles.items():
        if not path.exists():
            _write(path, _with_login(admin.read_text().strip(), role, passwords[role]))


def _with_login(url: str, user: str, password: str) -> str:
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{user}:{quote(password, safe='')}@{authority.rpartition('@')[2]}{slash}{path}"


def _share(directory: Path, services: Path) -> None:
    """Copy the files of each service into its own directory, and remove what it no longer needs."""
    for service, files in FILES.items():
        own = services / service
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, source in files.items():
            text = (directory / source).read_text()
            if not (own / name).exists() or (own / name).read_text() != text:
                _write(own / name, text)
        for path in own.iterdir():
            if path.is_file() and path.name not in files:
                path.unlink()


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
