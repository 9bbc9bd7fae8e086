"""Addresses of static files that change with their contents, so that browsers can keep them for ever."""

import hashlib
from functools import cache
from pathlib import Path

from flask import Flask, url_for


def add_static_urls(app: Flask) -> None:
    """Gives the templates `static_url(filename)`."""
    assert app.static_folder is not None
    folder = Path(app.static_folder)

    @cache
    def version(filename: str) -> str:
        return hashlib.sha256((folder / filename).read_bytes()).hexdigest()[:12]

    def static_url(filename: str) -> str:
        return url_for("static", filename=filename, v=version(filename))

    app.jinja_env.globals["static_url"] = static_url
