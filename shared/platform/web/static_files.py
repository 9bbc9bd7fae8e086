"""Addresses of static files that change with their contents, so that browsers can cache them for ever."""

import hashlib
from functools import cache
from pathlib import Path

from flask import Flask, url_for


def is_static(endpoint: str | None) -> bool:
    """Whether the endpoint serves static files."""
    return endpoint is not None and endpoint.rpartition(".")[2] == "static"


def add_static_urls(app: Flask) -> None:
    """Give the templates `static_url(filename)`, for files of the service and of the blueprints registered so far."""
    folders = {
        "static": app.static_folder,
        **{f"{name}.static": blueprint.static_folder for name, blueprint in app.blueprints.items()},
    }

    @cache
    def static_url(filename: str) -> str:
        for endpoint, folder in folders.items():
            if folder is not None and (path := Path(folder) / filename).is_file():
                version = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
                return url_for(endpoint, filename=filename, v=version)
        raise FileNotFoundError(filename)

    app.jinja_env.globals["static_url"] = static_url
