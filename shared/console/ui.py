"""The furniture of every page: styles, script, templates and words that several services share."""

from pathlib import Path

from flask import Blueprint, Flask

HOUSE_TRANSLATIONS = Path(__file__).parent / "translations"


def furnish(app: Flask) -> None:
    """Templates of the service's own come first, so that it can put another in the place of one of these."""
    app.register_blueprint(
        Blueprint(
            "house",
            __name__,
            static_folder="static",
            static_url_path="/static/house",
            template_folder="templates",
        )
    )
