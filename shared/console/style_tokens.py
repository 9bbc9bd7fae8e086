"""Serves tokens.css, the colours and sizes that all pages share.

It is a module of its own so that the checkout can use it without the rest of the console.
"""

from flask import Blueprint, Flask


def register_style_tokens(app: Flask) -> None:
    """Call this before `add_static_urls`, which then knows `static_url('tokens.css')`."""
    app.register_blueprint(
        Blueprint("tokens", __name__, static_folder="tokens", static_url_path="/static/tokens")
    )
