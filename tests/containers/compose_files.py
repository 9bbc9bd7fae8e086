"""Reads the compose files: the services and their environment, with variables replaced."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
DEVELOPMENT = PROJECT / "docker-compose.yml"
PRODUCTION = PROJECT / "docker-compose.production.yml"
EGRESS = PROJECT / "docker-compose.egress.yml"

ENGINES = {"postgres", "kafka", "kafka-2", "kafka-3"}
OBSERVERS = {"prometheus", "grafana"}
PROXIES = {"proxy", "public-proxy"}
NOT_OURS = ENGINES | OBSERVERS | PROXIES
"""Everything else runs from our own image."""

Service = Mapping[str, Any]
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?P<operator>:?[-?])?(?P<word>[^}]*)\}")


@cache
def services(path: Path = DEVELOPMENT) -> Mapping[str, Service]:
    found: Mapping[str, Service] = yaml.safe_load(path.read_text())["services"]
    return found


@cache
def read_compose_file(path: Path = DEVELOPMENT) -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(path.read_text())
    return found


def our_services(path: Path = DEVELOPMENT) -> dict[str, Service]:
    return {name: service for name, service in services(path).items() if name not in NOT_OURS}


def job_services() -> set[str]:
    return {name for name, service in our_services().items() if service["restart"] == "no"}


def interpolate(value: object, variables: Mapping[str, str] | None = None) -> str:
    """Replace variables as docker-compose 1.29 does, which does not support variables in defaults."""
    given = variables or {}

    def replace(found: re.Match[str]) -> str:
        default = found["word"] if (found["operator"] or "").endswith("-") else ""
        return given.get(found["name"]) or default

    text = _VARIABLE.sub(replace, str(value))
    assert "${" not in text, f"docker-compose 1.29 cannot read {value}"
    return text


def environment(name: str, variables: Mapping[str, str] | None = None, *paths: Path) -> dict[str, str]:
    """Return the environment of a service. Later files override earlier ones."""
    merged: dict[str, object] = {}
    for path in paths or (DEVELOPMENT,):
        merged |= services(path).get(name, {}).get("environment", {})
    return {key: interpolate(value, variables) for key, value in merged.items()}


def read_env_file(path: Path) -> dict[str, str]:
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)
