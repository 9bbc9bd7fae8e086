"""The base image of all stand-ins: Debian by debootstrap, with the package sources and certificates of this machine."""

import shutil
import sys
from pathlib import Path

from tests.compose.programs import run

SUITE = "bookworm"
BASE_IMAGE = f"mizan-stand-in/base:{SUITE}"
# libcap2-bin gives the proxy the right to bind low ports.
PACKAGES = "ca-certificates,libcap2-bin"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def ensure_base(cache: Path) -> None:
    archive = cache / f"base-{SUITE}.tar"
    if not archive.exists():
        _bootstrap(archive)
    run("docker", "import", archive, BASE_IMAGE)


def _bootstrap(archive: Path) -> None:
    if shutil.which("debootstrap") is None:
        run("apt-get", "install", "-y", "-qq", "debootstrap")
    root = archive.parent / "base.new"
    shutil.rmtree(root, ignore_errors=True)
    try:
        run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, root, *_mirror())
        _copy_package_sources(root)
        unfinished = archive.with_suffix(".new")
        run("tar", "-C", root, "--exclude=./var/cache/apt/*.bin", "--exclude=*.deb", "-cf", unfinished, ".")
        unfinished.rename(archive)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _mirror() -> list[str]:
    """Return the mirror from which this machine gets the suite; empty for the default of debootstrap."""
    listed = run("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)")
    return [line.split()[1] for line in listed.splitlines() if line.split()[0] == SUITE][:1]


def _copy_package_sources(root: Path) -> None:
    if _mirror():
        (root / "etc/apt/sources.list").unlink(missing_ok=True)
        for source in (
            *Path("/etc/apt").glob("sources.list"),
            *Path("/etc/apt/sources.list.d").glob("*"),
        ):
            if source.suffix in {".list", ".sources"}:
                shutil.copy(source, root / source.relative_to("/"))
        for keys in Path("/usr/share/keyrings").glob("*.gpg"):
            shutil.copy(keys, root / keys.relative_to("/"))
    proxies = [line for line in run("apt-config", "dump").splitlines() if "::Proxy" in line]
    (root / "etc/apt/apt.conf.d/90this-machine").write_text("".join(f"{line}\n" for line in proxies))
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, root / CERTIFICATES.relative_to("/"))


def pip_settings() -> str:
    """Return a pip.conf with the package indexes of this machine."""
    lines = ["[global]"]
    for line in run(sys.executable, "-m", "pip", "config", "list").splitlines():
        name, _, value = line.partition("=")
        key = name.rsplit(".", 1)[-1]
        if key in {"index-url", "extra-index-url", "trusted-host", "proxy"}:
            lines.append(f"{key} = {value.strip(chr(39))}")
    return "\n".join([*lines, f"cert = {CERTIFICATES}", "timeout = 180", ""])
