"""Which image each variable of the compose file gets: one that was given, the official one, or its stand-in."""

import re
from pathlib import Path

from tests.compose.project import MIZAN_IMAGE, ROOT
from tests.compose.stand_ins import StandIn, is_there
from tests.compose.surroundings import SURROUNDINGS, ProgramFailedError, run

PULL_SECONDS = 600


def choose(stand_in: StandIn, cache: Path) -> str:
    if given := SURROUNDINGS.get(stand_in.variable):
        return given
    official = default_of(stand_in.variable)
    if is_there(official) or _pulled(official):
        return official
    stand_in.ensure(cache)
    return stand_in.image


def default_of(variable: str) -> str:
    """What the compose file takes where nothing is set."""
    found = re.search(rf"\$\{{{variable}:-([^}}]+)\}}", (ROOT / "docker-compose.yml").read_text())
    assert found is not None, f"docker-compose.yml has no {variable}"
    return found[1]


def _pulled(image: str) -> bool:
    try:
        run("docker", "pull", "--quiet", image, within=PULL_SECONDS)
    except ProgramFailedError:
        return False
    return True


def build_ours() -> None:
    """On the network of this machine: where packages come from may only be reached from there."""
    run(
        "docker", "build", "--network", "host", "-t", MIZAN_IMAGE,
        "--build-arg", f"PYTHON_IMAGE={SURROUNDINGS['PYTHON_IMAGE']}", *_pip_arguments(), ROOT,
        env={"DOCKER_BUILDKIT": "0"},
    )  # fmt: skip


def _pip_arguments() -> list[str]:
    given = [name for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL") if name in SURROUNDINGS]
    return [word for name in given for word in ("--build-arg", name)]
