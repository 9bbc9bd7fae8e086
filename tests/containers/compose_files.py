"""The compose files as the tests read them: what each service is given, with variables as somebody set them."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
DEVELOPMENT = PROJECT / "docker-compose.yml"
PRODUCTION = PROJECT / "docker-compose.production.yml"

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
def whole(path: Path = DEVELOPMENT) -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(path.read_text())
    return found


def ours(path: Path = DEVELOPMENT) -> dict[str, Service]:
    return {name: service for name, service in services(path).items() if name not in NOT_OURS}


def one_shots() -> set[str]:
    return {name for name, service in ours().items() if service["restart"] == "no"}


def interpolated(value: object, variables: Mapping[str, str] | None = None) -> str:
    """As compose does it, and no more than docker-compose 1.29 can: no variable within another's default."""
    given = variables or {}

    def replaced(found: re.Match[str]) -> str:
        default = found["word"] if (found["operator"] or "").endswith("-") else ""
        return given.get(found["name"]) or default

    text = _VARIABLE.sub(replaced, str(value))
    assert "${" not in text, f"docker-compose 1.29 cannot read {value}"
    return text


def environment(name: str, variables: Mapping[str, str] | None = None, *paths: Path) -> dict[str, str]:
    """Of a service, with what the later files put in place of what the earlier ones say."""
    merged: dict[str, object] = {}
    for path in paths or (DEVELOPMENT,):
        merged |= services(path).get(name, {}).get("environment", {})
    return {key: interpolated(value, variables) for key, value in merged.items()}


def variables_of(path: Path) -> dict[str, str]:
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)
