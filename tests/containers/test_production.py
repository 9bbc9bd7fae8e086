"""docker-compose.production.yml has valid production settings, and disables everything for development."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from shared.platform.database.roles import OWNER
from shared.platform.keys import COMMAND_LINE, PROCESS_PURPOSES
from shared.platform.production.settings_rules import find_setting_problems
from shared.platform.settings import (
    KEY_VARIABLES,
    ApiSettings,
    CheckoutSettings,
    Environment,
    read_environment,
)
from stack.services import JOBS, SERVICES
from tests.containers.compose_files import (
    DEVELOPMENT,
    ENGINES,
    PRODUCTION,
    environment,
    interpolate,
    read_compose_file,
    services,
)
from tests.containers.reachability import production

ADDRESSES = {
    "API_PUBLIC_URL": "https://api.mizan.ly",
    "CHECKOUT_PUBLIC_URL": "https://pay.mizan.ly",
    "DASHBOARD_PUBLIC_URL": "https://dashboard.mizan.ly",
}
IN_PRODUCTION = [service.name for service in (*SERVICES, *JOBS)]


@pytest.mark.parametrize("name", IN_PRODUCTION)
def test_settings_of_every_service_pass_the_production_checks(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secrets = services(PRODUCTION)[name]["secrets"]
    kafka = [file for file in secrets if file.startswith("kafka_")]
    logins = [file for file in secrets if file.startswith("database_url")]
    role = {each.name: each.database_role for each in (*SERVICES, *JOBS)}[name]
    wanted = "database_url" if role == OWNER else f"database_url_{str(role).removeprefix('mizan_')}"
    assert logins == ([wanted] if role else [])
    for file in secrets:
        secret = "5Zq8wPv3rT7xKc2n" if file in kafka else Fernet.generate_key().decode()
        if file in logins:
            secret = f"postgresql://{role}:dbQk3r7pXw91sZt@postgres:5432/mizan"
        (tmp_path / file).write_text(secret + "\n")
    given = environment(name, ADDRESSES, DEVELOPMENT, PRODUCTION)
    for key, value in given.items():
        monkeypatch.setenv(key, value.replace("/run/secrets", str(tmp_path)))
    reading = read_environment(uses_kafka=bool(kafka))
    assert reading.settings.environment is Environment.PRODUCTION
    process, is_service = (name, True) if name in PROCESS_PURPOSES else (COMMAND_LINE, False)
    problems = find_setting_problems(reading.settings, process, needs_keys=is_service)
    assert {**reading.problems, **problems} == {}
    has_sandbox = name in {"sandbox", "checkout", "checkout-verifier"}
    assert (reading.settings.sandbox is not None) == has_sandbox
    assert (reading.settings.checkout, reading.settings.api) == (CheckoutSettings(), ApiSettings())


@pytest.mark.parametrize("path", [DEVELOPMENT, PRODUCTION], ids=["development", "production"])
def test_each_service_gets_the_keys_of_its_own_purposes_and_no_other(path: Path) -> None:
    """As variables. That each is also given the files that these name, and no other, is in test_hardening.py."""
    for name, service in services(path).items():
        process = name.removesuffix("-2")
        if "MIZAN_ENV" not in service.get("environment", {}) or process in {"secrets", "sandbox"}:
            continue
        if process in {"demo", "migrate", "topics"}:
            process = COMMAND_LINE if process == "demo" else "api"
        files = {
            variable: str(value) for variable, value in service["environment"].items() if "KEYS" in variable
        }
        wanted = {f"{KEY_VARIABLES[purpose]}_FILE" for purpose in PROCESS_PURPOSES[process]}
        assert files.keys() == wanted, name
        directory = "/run/secrets/" if path is PRODUCTION else "/var/lib/mizan/secrets/"
        assert all(file.startswith(directory) for file in files.values()), name
        session_keys = files.get("MIZAN_SESSION_KEYS_FILE", f"{process}_session_keys")
        assert session_keys.endswith(f"{process}_session_keys"), name


def test_only_containers_in_internal_networks_are_reached_without_tls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The engines, the sandbox, and what the sandbox calls. An operator's own server needs TLS."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://mizan:dbQk3r7pXw91sZt@postgres/mizan")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "kafka:9092")
    monkeypatch.setenv("PLAINTEXT_HOSTS", environment("api", ADDRESSES, PRODUCTION)["PLAINTEXT_HOSTS"])
    assert read_environment().settings.plaintext_hosts == ENGINES | {"sandbox", "checkout", "api"}
    for name in ENGINES | {"sandbox"}:
        assert not production().ways_out(name)
    assert {"checkout", "api"} <= production().members("front")


def test_demo_shop_and_development_proxy_are_off() -> None:
    off = {name for name, service in services(PRODUCTION).items() if service.get("profiles") == ["never"]}
    assert off == {"demo", "shop", "proxy"}


def test_sandbox_runs_in_production_and_is_watched() -> None:
    """On internal networks, with its ledger in a volume and a secret of its own."""
    assert not production().ways_out("sandbox")
    ledger = environment("sandbox", ADDRESSES, DEVELOPMENT, PRODUCTION)["SANDBOX_LEDGER"]
    assert f"sandbox:{ledger.rpartition('/')[0]}" in services()["sandbox"]["volumes"]
    assert services(PRODUCTION)["sandbox"]["secrets"] == ["sandbox_secret"]
    targets = environment("monitor", ADDRESSES, DEVELOPMENT, PRODUCTION)["MONITOR_TARGETS"]
    assert "sandbox=http://sandbox:8007" in targets
    assert "prometheus" not in services(PRODUCTION)  # it scrapes the same targets as in development
    assert any("prometheus/sandbox.yml" in mount for mount in services()["prometheus"]["volumes"])
    assert "ports" not in services(PRODUCTION)["sandbox"]


def test_every_service_in_production_has_the_production_environment() -> None:
    """Also those of a cluster: a forgotten one would run with development settings."""
    left = {
        name
        for name, service in services().items()
        if "MIZAN_ENV" in service.get("environment", {})
        and services(PRODUCTION).get(name, {}).get("profiles") != ["never"]
    }
    assert left == {
        name
        for name, service in services(PRODUCTION).items()
        if service.get("environment", {}).get("MIZAN_ENV") == "production"
    }


def test_public_urls_are_required() -> None:
    for name, example in ADDRESSES.items():
        setting = services(PRODUCTION)["api"]["environment"][name]
        assert setting.startswith(f"${{{name}:?")
        assert interpolate(setting, ADDRESSES) == example


def test_secrets_are_files_with_configurable_paths() -> None:
    for name, secret in read_compose_file(PRODUCTION)["secrets"].items():
        assert secret == {"file": f"${{{name.upper()}_FILE:-./secrets/{name}}}"}
    assert services(PRODUCTION)["postgres"]["secrets"] == ["database_password"]
