"""The monitor serves the documentation itself: runbooks must open when other services are down."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import requests

from shared.platform.database.pool import Database
from shared.platform.settings import Settings
from tests.monitor.world import MonitorWorld


def test_documentation_opens_without_a_session_and_without_a_database(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    (tmp_path / "en" / "operations").mkdir(parents=True)
    for name in ("index.html", "operations/index.html"):
        (tmp_path / "en" / name).write_text(f"<h1>{name}</h1>")
    unreachable = replace(
        settings.database, url="postgresql://nobody@127.0.0.1:1/nothing", pool_timeout_s=0.1
    )
    with closing(Database(unreachable, "monitor")) as no_database:
        world = MonitorWorld(replace(settings, documentation_dir=tmp_path), database, no_database)
        with world.serve():
            answer = requests.get(f"{world.url}/docs/en/operations/", timeout=10)
            reference = requests.get(f"{world.url}/docs", allow_redirects=False, timeout=10)
        world.inspector.stop()
    assert (answer.status_code, answer.text) == (200, "<h1>operations/index.html</h1>")
    policy = answer.headers["Content-Security-Policy"]
    assert "img-src 'self' data:" in policy, "the site's own policy"
    assert "script-src 'none'" in policy, "a script could act with the session of an operator"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert reference.headers["Location"] == f"{settings.public_urls.api}/docs"
