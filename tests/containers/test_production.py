"""docker-compose.production.yml: what it gives to the services, production accepts; what is not for it does not run."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from shared.platform.production.settings_rules import find_setting_problems
from shared.platform.settings import Environment, read_environment
from stack.services import JOBS, SERVICES
from tests.containers.compose_files import (
    DEVELOPMENT,
    PRODUCTION,
    environment,
    interpolated,
    services,
    whole,
)

ADDRESSES = {
    "API_PUBLIC_URL": "https://api.mizan.ly",
    "CHECKOUT_PUBLIC_URL": "https://pay.mizan.ly",
    "DASHBOARD_PUBLIC_URL": "https://dashboard.mizan.ly",
}
IN_PRODUCTION = [service.name for service in SERVICES if service.in_production] + [job.name for job in JOBS]


@pytest.mark.parametrize("name", IN_PRODUCTION)
def test_production_accepts_what_it_is_given(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secrets = {
        "secret_keys": Fernet.generate_key().decode() + "\n",
        "database_url": "postgresql://mizan:dbQk3r7pXw91sZt@postgres:5432/mizan\n",
    }
    assert services(PRODUCTION)[name]["secrets"] == list(secrets)
    for file, secret in secrets.items():
        (tmp_path / file).write_text(secret)
    given = environment(name, ADDRESSES, DEVELOPMENT, PRODUCTION)
    for key, value in given.items():
        monkeypatch.setenv(key, value.replace("/run/secrets", str(tmp_path)))
    reading = read_environment()
    assert reading.settings.environment is Environment.PRODUCTION
    assert {**reading.problems, **find_setting_problems(reading.settings)} == {}
    assert reading.settings.sandbox is None
    assert reading.settings.checkout.codes_per_phone == 10


def test_the_sandbox_the_demo_and_the_ports_of_development_are_off() -> None:
    off = {name for name, service in services(PRODUCTION).items() if service.get("profiles") == ["never"]}
    assert off == {"sandbox", "demo", "shop", "proxy"}
    assert "sandbox" not in environment("monitor", {}, DEVELOPMENT, PRODUCTION)["MONITOR_TARGETS"]
    assert any(
        mount.endswith("targets/sandbox.yml:ro") for mount in services(PRODUCTION)["prometheus"]["volumes"]
    )


def test_every_service_of_ours_that_runs_there_knows_that_it_does() -> None:
    """Also those of a cluster: one that was forgotten would run with the settings of development."""
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


def test_addresses_must_be_given() -> None:
    for name, example in ADDRESSES.items():
        asked = services(PRODUCTION)["api"]["environment"][name]
        assert asked.startswith(f"${{{name}:?")
        assert interpolated(asked, ADDRESSES) == example


def test_secrets_are_files_whose_places_can_be_chosen() -> None:
    for name, secret in whole(PRODUCTION)["secrets"].items():
        assert secret == {"file": f"${{{name.upper()}_FILE:-./secrets/{name}}}"}
    assert services(PRODUCTION)["postgres"]["secrets"] == ["database_password"]
