"""Chooses the image of each variable of the compose file: the given one, the official one, or its stand-in."""

import re
from pathlib import Path

from tests.compose.programs import ENVIRONMENT, ProgramFailedError, run
from tests.compose.project import MIZAN_IMAGE, ROOT
from tests.compose.stand_ins import StandIn, image_exists

PULL_SECONDS = 600


def choose_image(stand_in: StandIn, cache: Path) -> str:
    if given := ENVIRONMENT.get(stand_in.variable):
        return given
    official = default_image(stand_in.variable)
    if image_exists(official) or _pull(official):
        return official
    stand_in.ensure(cache)
    return stand_in.image


def default_image(variable: str) -> str:
    """Return the default of the variable in the compose file."""
    found = re.search(rf"\$\{{{variable}:-([^}}]+)\}}", (ROOT / "docker-compose.yml").read_text())
    assert found is not None, f"docker-compose.yml has no {variable}"
    return found[1]


def _pull(image: str) -> bool:
    try:
        run("docker", "pull", "--quiet", image, within=PULL_SECONDS)
    except ProgramFailedError:
        return False
    return True


def build_mizan_image() -> None:
    """Build our image on the network of this machine, because only that may reach the package index."""
    run(
        "docker", "build", "--network", "host", "-t", MIZAN_IMAGE,
        "--build-arg", f"PYTHON_IMAGE={ENVIRONMENT['PYTHON_IMAGE']}", *_pip_arguments(), ROOT,
        env={"DOCKER_BUILDKIT": "0"},
    )  # fmt: skip


def _pip_arguments() -> list[str]:
    given = [name for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL") if name in ENVIRONMENT]
    return [word for name in given for word in ("--build-arg", name)]
