"""Addresses of static files that change with their contents, so that browsers can keep them for ever."""

import hashlib
from functools import cache
from pathlib import Path

from flask import Flask, url_for


def is_static(endpoint: str | None) -> bool:
    """Whether it is of files that are the same for everybody."""
    return endpoint is not None and endpoint.rpartition(".")[2] == "static"


def add_static_urls(app: Flask) -> None:
    """Gives the templates `static_url(filename)`: of a file of the service, or of a blueprint that it has by now."""
    folders = {
        "static": app.static_folder,
        **{f"{name}.static": blueprint.static_folder for name, blueprint in app.blueprints.items()},
    }

    @cache
    def found(filename: str) -> tuple[str, str]:
        for endpoint, folder in folders.items():
            if folder is not None and (path := Path(folder) / filename).is_file():
                return endpoint, hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        raise FileNotFoundError(filename)

    def static_url(filename: str) -> str:
        endpoint, version = found(filename)
        return url_for(endpoint, filename=filename, v=version)

    app.jinja_env.globals["static_url"] = static_url
