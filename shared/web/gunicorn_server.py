"""Runs gunicorn from our own code, so that its settings come as arguments and not from a file."""

from collections.abc import Callable, Mapping

from flask import Flask
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]


def serve(make_app: Callable[[], Flask], config: Mapping[str, object]) -> None:
    """Serve until told to stop. Each worker makes its own application, after the fork."""
    _Server(make_app, config).run()


class _Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, make_app: Callable[[], Flask], config: Mapping[str, object]) -> None:
        self._make_app = make_app
        self._config = config
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._config.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self._make_app()
