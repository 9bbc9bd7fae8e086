"""The Caddyfile has one site for each public service and none for operators, and hides the proxy itself."""

import re

import pytest

from shared.platform.web.gunicorn_server import KEEPALIVE_SECONDS
from stack.services import SERVICES, SHOP
from tests.containers.compose_files import DEVELOPMENT, PRODUCTION, PROJECT, environment, services

FOLDER = PROJECT / "deploy" / "proxy"
CADDYFILE = (FOLDER / "Caddyfile").read_text()
SITES = dict(re.findall(r"\{\$(\w+)_SITES\} \{\n(?:\t.*\n)*?\timport before (\w+ \d+)\n\}", CADDYFILE))


@pytest.mark.parametrize("name", ["api", "checkout", "dashboard"])
def test_every_public_service_has_a_site(name: str) -> None:
    port = next(8000 + service.port_offset for service in SERVICES if service.name == name)
    assert SITES[name.upper()] == f"{name} {port}"
    for path, proxy in ((DEVELOPMENT, "proxy"), (PRODUCTION, "public-proxy")):
        assert f"{name.upper()}_SITES" in services(path)[proxy]["environment"]


def test_no_other_service_has_a_site() -> None:
    assert SITES.keys() == {"API", "CHECKOUT", "DASHBOARD"}
    assert CADDYFILE.count("reverse_proxy") == 1
    assert not re.search("monitor 8|prometheus|grafana", CADDYFILE)
    of_development = [path.name for path in FOLDER.rglob("*.caddy")]
    assert of_development == ["shop.caddy"]
    shop = (FOLDER / "development" / "shop.caddy").read_text()
    assert f"import before shop {8000 + SHOP.port_offset}" in shop


def test_of_the_sandbox_only_the_payment_of_test_intents_is_reached() -> None:
    """POST /sandbox/pay at the address of the API; never its charges."""
    assert re.findall(r"import service sandbox (\d+)", CADDYFILE) == ["8007"]
    site = CADDYFILE.partition("{$API_SITES} {")[2].partition("\n}")[0]
    assert "@pay {\n\t\tmethod POST\n\t\tpath /sandbox/pay\n\t}" in site
    assert "handle @pay {\n\t\trewrite * /pay\n\t\timport service sandbox 8007\n\t}" in site


def test_only_services_behind_the_proxy_trust_it() -> None:
    """The monitor has no proxy: X-Forwarded-For would be a claim of whoever connects."""
    for paths in ((DEVELOPMENT,), (DEVELOPMENT, PRODUCTION)):
        assert environment("dashboard", None, *paths)["TRUSTED_PROXIES"] == "1"
        assert environment("monitor", None, *paths)["TRUSTED_PROXIES"] == "0"
    given = {"MONITOR_TRUSTED_PROXIES": "1"}
    assert environment("monitor", given)["TRUSTED_PROXIES"] == "1"


def test_shop_has_a_site_in_development_only() -> None:
    assert CADDYFILE.rstrip().endswith("import {$PROXY_FOR:production}/*.caddy")
    assert services()["proxy"]["environment"]["PROXY_FOR"] == "development"
    assert services(PRODUCTION)["public-proxy"]["environment"]["PROXY_FOR"] == "production"


def test_proxy_hides_operations_pages() -> None:
    for path in ("/metrics", "/readyz", "/healthz"):
        assert re.search(rf"@operations path .*{path} {path}/\*", CADDYFILE)


def test_proxy_has_no_admin_interface_and_hides_sensitive_headers() -> None:
    assert "admin off" in CADDYFILE
    assert CADDYFILE.count("-Server") == 2
    for left_out in ("request>headers delete", "resp_headers delete", "/invitations/"):
        assert left_out in CADDYFILE


def test_proxy_buffers_request_bodies_completely() -> None:
    """Its buffer is larger than its size limit, which is larger than the limit of a service."""
    max_size = int(re.findall(r"max_size (\d+)KB", CADDYFILE)[0]) * 1000
    buffer_size = int(re.findall(r"request_buffers (\d+)KiB", CADDYFILE)[0]) * 1024
    assert 64 * 1024 < max_size < buffer_size


def test_proxy_closes_idle_connections_before_the_services_do() -> None:
    assert int(re.findall(r"\bkeepalive (\d+)s", CADDYFILE)[0]) < KEEPALIVE_SECONDS


def test_both_proxies_differ_only_in_ports_and_addresses() -> None:
    development, production = services()["proxy"], services(PRODUCTION)["public-proxy"]
    differing = {
        key for key in development.keys() | production.keys() if development.get(key) != production.get(key)
    }
    assert differing == {"environment", "ports", "depends_on", "volumes"}
    assert set(development["volumes"]) < set(production["volumes"])
