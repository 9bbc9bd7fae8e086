"""The API and the monitor serve the site. It is public, and nothing outside of it can be read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from services.api.app import make_app
from shared.platform.database.pool import Database
from shared.platform.settings import DatabaseSettings, Settings
from shared.platform.web.app import create_app
from shared.platform.web.documentation import documentation_blueprint
from tests.database_roles import open_as


@pytest.fixture
def api_database(database_settings: DatabaseSettings) -> Iterator[Database]:
    with open_as("mizan_api", database_settings, "api") as made:
        yield made


@pytest.fixture
def client(settings: Settings, api_database: Database, site: Path) -> FlaskClient:
    return make_app(replace(settings, documentation_dir=site), api_database).test_client()


@pytest.fixture
def small_site(tmp_path: Path) -> Flask:
    """A site with a secret beside it."""
    (tmp_path / "site" / "en" / "guides").mkdir(parents=True)
    for name in ("index.html", "404.html", "guides/index.html"):
        (tmp_path / "site" / "en" / name).write_text(name)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "site" / "secret").write_text("secret")
    app = create_app("api", {})
    app.register_blueprint(documentation_blueprint(tmp_path / "site"))
    return app


def test_api_serves_both_languages(client: FlaskClient) -> None:
    for lang, title in (("en", "Accept a payment"), ("ar", "استقبال دفعة")):
        answer = client.get(f"/docs/{lang}/guides/payments/")
        assert (answer.status_code, answer.mimetype) == (200, "text/html")
        assert f"<title>{title}" in answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self';" in policy
        assert "default-src 'none'" in policy
        index = client.get(f"/docs/{lang}/search.json")
        assert (index.status_code, index.mimetype) == (200, "application/json")


def test_reference_page_links_to_the_documentation(client: FlaskClient) -> None:
    for lang in ("en", "ar"):
        assert f'href="/docs/{lang}/"' in client.get(f"/docs?lang={lang}").text


def test_unchanged_page_is_not_sent_again(client: FlaskClient) -> None:
    first = client.get("/docs/en/")
    again = client.get("/docs/en/", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize("path", ["/docs/en", "/docs/en/guides"])
def test_directory_without_its_slash_is_redirected_on_this_server(small_site: Flask, path: str) -> None:
    answer = small_site.test_client().get(path, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{path}/")


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "../../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "guides/../../secret",
        "guides/%2e%2e/%2e%2e/secret",
        "/etc/passwd",
        "//etc/passwd",
        "..\\secret",
        "%00",
        "x" * 5000,
        "guides/" + "x" * 300,
        "nowhere",
        "guides/nowhere/",
    ],
)
def test_nothing_outside_of_the_site_is_served(small_site: Flask, path: str) -> None:
    answer = small_site.test_client().get(f"/docs/en/{path}")
    assert answer.status_code == 404
    assert b"secret" not in answer.data


def test_unknown_page_says_so_on_a_page_of_the_site(small_site: Flask) -> None:
    answer = small_site.test_client().get("/docs/en/nowhere/")
    assert (answer.status_code, answer.mimetype, answer.text) == (404, "text/html", "404.html")


def test_without_a_site_the_answer_says_how_to_build_it(tmp_path: Path) -> None:
    app = create_app("api", {})
    app.register_blueprint(documentation_blueprint(tmp_path))
    answer = app.test_client().get("/docs/en/")
    assert answer.status_code == 404
    assert "make docs" in answer.text


def test_methods_other_than_get_are_refused(small_site: Flask) -> None:
    assert small_site.test_client().post("/docs/en/").status_code == 405
