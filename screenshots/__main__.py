"""`python -m screenshots` starts a stack in a directory of its own, lives a little in it, and takes the pictures."""

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

_USUAL_PORTS = 8000
_SOON = "2,2,600,600,600,600,600,600"
"""The second and third try of a webhook follow within seconds."""


def main() -> int:
    if find_chromium() is None:
        install(("chromium", "fonts-dejavu-core"), "no Chromium here")
    chromium = find_chromium()
    if chromium is None:
        print(
            "screenshots: no Chromium was found; install it (Debian: apt-get install chromium)",
            file=sys.stderr,
        )
        return 1
    with TemporaryDirectory(prefix="mizan-screenshots-") as directory:
        stack = RunningStack(
            Path(directory) / "stack", port_base=_ports(), module="stack", WEBHOOK_RETRY_DELAYS=_SOON
        )
        try:
            print("screenshots: starting a stack", flush=True)
            _photograph(stack.wait_ready(within=300), chromium)
        finally:
            stack.end()
    return 0


def _photograph(facts: dict[str, object], chromium: str) -> None:
    album = PROJECT / "docs" / "images"
    album.mkdir(parents=True, exist_ok=True)
    addresses = {key: str(value) for key, value in facts.items()}
    demo = facts["demo"]
    assert isinstance(demo, dict)
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=arguments)
        Tour(Camera(browser, album), addresses, demo).take_all()


def _ports() -> int:
    """Those that a newcomer sees, so that the pictures show them, too; others when somebody is there."""
    is_usual_free = all(is_free(_USUAL_PORTS + offset) for offset in range(10))
    return _USUAL_PORTS if is_usual_free else free_port_base()


if __name__ == "__main__":
    sys.exit(main())
