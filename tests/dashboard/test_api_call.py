"""The page of an application says how to call the API, with a call that works."""

import json
import re
import shlex
import subprocess
from dataclasses import replace
from html import unescape

from services.api.app import make_app as make_api
from shared.domain.accounts.roles import Role
from stack.ports import find_free_ports
from tests.dashboard.test_applications import create
from tests.dashboard.world import DashboardWorld
from tests.database_roles import open_as
from tests.servers import serve

_CALL = re.compile(r"<pre [^>]*data-copied-text>(curl .*?)</pre>", re.DOTALL)


def test_call_on_the_page_creates_an_intent(world: DashboardWorld) -> None:
    """Pasted into a shell, with the credentials filled in. Pasted again, it returns the same intent."""
    (port,) = find_free_ports(1)
    api = f"http://127.0.0.1:{port}"
    world.settings = replace(world.settings, public_urls=replace(world.settings.public_urls, api=api))
    with world.serve():
        person = world.person(Role.VIEWER)
        page = person.open(f"/applications/{world.application.id}").text
        text = person.text
    assert f"Base address {api}/api/v1" in text
    assert "X-API-Key: pk_live_…" in text
    assert "Authorization: Bearer at_…" in text
    assert f'<a href="{api}/docs?lang=en">API reference</a>' in page
    call = unescape(_CALL.findall(page)[0])
    with (
        open_as("mizan_api", world.settings.database, "api") as database,
        serve(make_api(world.settings, database), port),
    ):
        refused, first, again = (
            json.loads(_paste(filled_in))
            for filled_in in (call, *[_fill_in(call, world)] * 2)
        )  # fmt: skip
    assert set(refused) == {"error"}, "without credentials the call says what is missing"
    assert first["data"]["uuid"] == again["data"]["uuid"]
    assert world.rows("select merchant_reference, amount from payment_intents") == [("first-order", 25_500)]


def test_call_of_a_new_application_works_as_it_is_pasted(world: DashboardWorld) -> None:
    (port,) = find_free_ports(1)
    api = f"http://127.0.0.1:{port}"
    world.settings = replace(world.settings, public_urls=replace(world.settings.public_urls, api=api))
    with world.serve():
        (call,) = _CALL.findall(create(world.person(Role.OWNER)).text)
    with (
        open_as("mizan_api", world.settings.database, "api") as database,
        serve(make_api(world.settings, database), port),
    ):
        answer = json.loads(_paste(unescape(call)))
    assert answer["data"]["checkout_url"].startswith(world.settings.public_urls.checkout)


def _fill_in(call: str, world: DashboardWorld) -> str:
    filled_in = call.replace("YOUR_API_KEY", world.application.api_key)
    return filled_in.replace("YOUR_ACCESS_TOKEN", world.application.access_token)


def _paste(call: str) -> str:
    assert shlex.split(call)[0] == "curl"
    return subprocess.run(["sh", "-c", call], capture_output=True, text=True, check=True, timeout=60).stdout
