"""Registers the UI kit with an application: templates, styles, script, languages and error pages."""

from collections.abc import Sequence

from flask import Blueprint, Flask, g, request
from flask_babel import LazyString

from shared.console import delivery_labels, payment_labels
from shared.console.cookies import session_token
from shared.console.error_pages import ErrorPage, register_error_pages
from shared.console.language import register_languages
from shared.console.style_tokens import register_style_tokens
from shared.platform.web.static_files import add_static_urls


def register(
    app: Flask, *, home: str, home_label: LazyString, tagline: Sequence[LazyString], error_page: ErrorPage
) -> None:
    """Call this before the service's own blueprints are registered.

    `home` is the endpoint of the first page, and `home_label` the text of a link to it. `tagline` is shown beside the
    sign-in form, one line for each text.
    A service provides the template `navigation.html` with its sections, and the variables `header_title` and
    `header_detail` for the bar above every page. Its own templates win over those of the kit with the same name.
    """
    register_style_tokens(app)
    app.register_blueprint(
        Blueprint(
            "console",
            __name__,
            static_folder="static",
            static_url_path="/static/console",
            template_folder="templates",
        )
    )
    add_static_urls(app)
    app.jinja_env.globals.update(delivery_labels=delivery_labels, payment_labels=payment_labels)
    register_languages(app, home)
    register_error_pages(app, error_page)

    @app.context_processor
    def page_frame() -> dict[str, object]:
        session = g.get("signed_in")
        return {
            "signed_in": session.account if session else None,
            "section": request.blueprint,
            "home_endpoint": home,
            "home_label": home_label,
            # The page of an unknown address does not look up the session, so the cookie has to do.
            "has_session": session is not None or bool(session_token()),
            "tagline": tagline,
        }
