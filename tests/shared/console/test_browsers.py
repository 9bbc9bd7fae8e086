"""A session is named by its browser and system, whatever the client sent."""

import pytest
from flask import Flask
from flask_babel import Babel

from shared.console.browsers import browser_label

_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "expected"),
    [
        ("Mozilla/5.0 (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0", "Firefox on Android"),
        (f"Mozilla/5.0 (Linux; Android 10; K) {_WEBKIT} Chrome/131.0.0.0 Mobile Safari/537.36", "Chrome on Android"),
        (
            f"Mozilla/5.0 (Linux; Android 14; K) {_WEBKIT} SamsungBrowser/26.0 Chrome/122.0 Mobile Safari/537.36",
            "Samsung Internet on Android",
        ),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64) {_WEBKIT} Chrome/131.0 Safari/537.36 Edg/131.0", "Edge on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64) {_WEBKIT} Chrome/130.0 Safari/537.36 OPR/115.0", "Opera on Windows"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Version/18.1 Safari/604.1",
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 CriOS/131.0 Safari/604.1",
            "Chrome on iPhone",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18.1 Safari/605.1.15", "Safari on macOS"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0", "Firefox on Linux"),
        ("curl/8.10.1", "curl"),
        ("python-requests/2.32.3", "Python requests"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "Unknown browser on Linux"),
        ("<script>alert(1)</script>", "Unknown browser"),
        ("", "Unknown browser"),
        (None, "Unknown browser"),
    ],
)  # fmt: skip
def test_browser_and_system_are_named(user_agent: str | None, expected: str) -> None:
    app = Flask(__name__)
    Babel(app, default_locale="en")
    with app.test_request_context():
        assert browser_label(user_agent) == expected
