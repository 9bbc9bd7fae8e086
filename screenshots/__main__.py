"""`python -m screenshots` starts a stack in a temporary directory, makes some payments, and takes the screenshots."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from screenshots.camera import Camera
from screenshots.tour import Tour
from stack.ports import is_free
from tests.browser import find_chromium
from tests.debian_packages import install
from tests.stack.running_stack import PROJECT, RunningStack, free_port_base

_DEFAULT_PORT_BASE = 8000
_RETRY_DELAYS = "2,2,600,600,600,600,600,600"
"""The second and third try of a webhook follow after two seconds each."""


def main() -> int:
    if find_chromium() is None:
        install(("chromium", "fonts-dejavu-core"), "Chromium is missing")
    chromium = find_chromium()
    if chromium is None:
        print(
            "screenshots: no Chromium was found; install it (Debian: apt-get install chromium)",
            file=sys.stderr,
        )
        return 1
    with TemporaryDirectory(prefix="mizan-screenshots-") as directory:
        stack = RunningStack(
            Path(directory) / "stack",
            port_base=_choose_port_base(),
            module="stack",
            WEBHOOK_RETRY_DELAYS=_RETRY_DELAYS,
        )
        try:
            print("screenshots: starting a stack", flush=True)
            _take_screenshots(stack.wait_ready(within=300), chromium)
        finally:
            stack.end()
    return 0


def _take_screenshots(facts: dict[str, object], chromium: str) -> None:
    images = PROJECT / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    addresses = {key: str(value) for key, value in facts.items()}
    demo = facts["demo"]
    assert isinstance(demo, dict)
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=arguments)
        Tour(Camera(browser, images), addresses, demo).take_all()


def _choose_port_base() -> int:
    """Return the default base, so that the screenshots show the usual ports, or another one if they are taken."""
    is_default_free = all(is_free(_DEFAULT_PORT_BASE + offset) for offset in range(10))
    return _DEFAULT_PORT_BASE if is_default_free else free_port_base()


if __name__ == "__main__":
    sys.exit(main())
