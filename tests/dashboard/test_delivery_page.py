"""The page of a delivery: the request, the responses, and the signature for a developer to compare."""

import hashlib
import hmac
import re
import shutil
import subprocess
from html import unescape
from uuid import UUID, uuid4

import pytest

from shared.domain.applications.webhook_secrets import roll_webhook_secret
from shared.domain.deliveries.try_results import RESPONSE_BODY_LIMIT
from shared.platform.sanitize import sanitize_text
from tests.dashboard.delivery_rows import CANCELED, Deliveries
from tests.dashboard.world import DashboardWorld
from tests.debian_packages import skip_without
from tests.page_client import PageClient
from tests.webhooks.receivers import Receiver, open_client, send_one

_RAW = re.compile(r"<pre[^>]*aria-labelledby=\"([\w-]+)\"[^>]*>(.*?)</pre>", re.DOTALL)


def show(person: PageClient, pages: DashboardWorld, delivery: UUID) -> dict[str, str]:
    """Open the page and return its preformatted texts by the ids of their titles."""
    answer = person.open(f"/applications/{pages.application.id}/deliveries/{delivery}")
    assert answer.status_code == 200
    return {name: unescape(text) for name, text in _RAW.findall(answer.text)}


def test_delivery_page_shows_details_and_every_try(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    intent = uuid4()
    delivery = deliveries.make("failed", 500, tries=3, event=CANCELED, intent=intent)
    deliveries.add_try(delivery, 1, None, failure="tls", answer=b"")
    deliveries.add_try(delivery, 2, 301, answer=b"moved")
    deliveries.add_try(delivery, 3, 500, answer=b"broken", is_resend=True)
    raw = show(viewer, pages, delivery)
    assert viewer.title == "Payment expired"
    for word in (str(delivery), str(intent), "Failed", "https://shop.example.ly/hooks", "42 ms"):
        assert word in viewer.text
    assert "Try 1 · Step 1 of 9 TLS error" in viewer.text
    assert "The TLS connection failed." in viewer.text
    assert "Try 2 · Step 2 of 9 301" in viewer.text
    assert "Try 3 · Resend 500" in viewer.text
    assert raw["answer-2"] == "moved"
    assert raw["answer-3"] == "broken"
    assert "answer-1" not in raw


def test_delivery_page_before_the_first_try(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    delivery = deliveries.make("pending", None, tries=0)
    raw = show(viewer, pages, delivery)
    assert "The request that will be sent" in viewer.text
    assert "There was none yet." in viewer.text
    assert "Step 1 of 9 · " in viewer.text
    assert str(delivery) in raw["body-title"]


def test_test_delivery_is_marked_and_links_to_no_payment(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    intent = uuid4()
    show(viewer, pages, deliveries.make(is_test=True, intent=intent))
    assert "Succeeded Test" in viewer.text
    assert "There is no such payment" in viewer.text
    assert f"/payments/{intent}" not in viewer.response.text


def test_delivery_links_to_its_payment(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    intent = uuid4()
    show(viewer, pages, deliveries.make(intent=intent))
    assert f'href="/applications/{pages.application.id}/payments/{intent}"' in viewer.response.text


HOSTILE = {
    b"<script>alert(1)</script>": "<script>alert(1)</script>",
    b"</pre><img src=x onerror=alert(1)>": "</pre><img src=x onerror=alert(1)>",
    b"{{ 7 * 7 }}{% raw %}": "{{ 7 * 7 }}{% raw %}",
    b"\x1b[2J\x00\x07": "\u241b[2J\u2400\u2407",
    b"\xff\xfe\xc3(": "\ufffd\ufffd\ufffd(",
    "\u202eevil\u2066".encode(): "\\u202eevil\\u2066",
    "خطأ داخلي".encode(): "خطأ داخلي",
    b"a\r\nb\tc\x7f": "a\nb\tc\u2421",
}


def test_response_bodies_are_escaped(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    delivery = deliveries.make("failed", 500, tries=len(HOSTILE))
    for number, answer in enumerate(HOSTILE, 1):
        deliveries.add_try(delivery, number, 500, answer=answer)
    raw = show(viewer, pages, delivery)
    assert [raw[f"answer-{number}"] for number in range(1, len(HOSTILE) + 1)] == list(HOSTILE.values())
    assert "<script>alert" not in viewer.response.text
    assert "<img src=x" not in viewer.response.text
    assert viewer.response.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_any_response_bytes_can_be_shown() -> None:
    text = sanitize_text(bytes(range(256)) * 4)
    assert not any(ord(character) < 0x20 and character not in "\n\t" for character in text)


def test_a_truncated_response_is_marked(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    whole, cut = deliveries.make(), deliveries.make()
    deliveries.add_try(whole, answer=b"x" * (RESPONSE_BODY_LIMIT - 1))
    deliveries.add_try(cut, answer=b"x" * RESPONSE_BODY_LIMIT)
    show(viewer, pages, whole)
    assert "16 KiB" not in viewer.text
    show(viewer, pages, cut)
    assert "Only the first 16 KiB are kept." in viewer.text


class TestSignature:
    def test_signature_is_what_the_receiver_computes(
        self, pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
    ) -> None:
        delivery = deliveries.make()
        deliveries.add_try(delivery)
        raw = show(viewer, pages, delivery)
        secret = pages.application.webhook_secret
        expected = hmac.new(secret.encode(), raw["body-title"].encode(), hashlib.sha256).hexdigest()
        assert f"Service-Signature: {expected}" in raw["headers-title"]
        assert expected in viewer.text
        assert secret not in viewer.response.text

    def test_signature_names_the_secret_version_of_each_try(
        self, pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
    ) -> None:
        """§6.6: after a roll, retries use the old secret, and a resend the current one."""
        delivery = deliveries.make("failed", 500, tries=3)
        deliveries.add_try(delivery, 1, 500)
        with pages.database.transaction() as connection:
            new = roll_webhook_secret(connection, pages.box, pages.application.id)
        deliveries.add_try(delivery, 2, 500)
        deliveries.add_try(delivery, 3, 500, is_resend=True)
        with pages.database.transaction() as connection:
            roll_webhook_secret(connection, pages.box, pages.application.id)
        raw = show(viewer, pages, delivery)
        body = raw["body-title"].encode()
        by_new = hmac.new(new.text.encode(), body, hashlib.sha256).hexdigest()
        by_old = hmac.new(pages.application.webhook_secret.encode(), body, hashlib.sha256).hexdigest()
        rows = re.findall(r"Version (\d+) .{,40}? (\d[\d, ]*) ([0-9a-f]{64})", viewer.text)
        assert [(version, tries[-4:].strip(), signed) for version, tries, signed in rows] == [
            ("2", "3", by_new),
            ("1", "1, 2", by_old),
        ]
        assert f"Service-Signature: {by_new}" in raw["headers-title"]

    def test_shell_command_computes_the_signature(
        self, pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
    ) -> None:
        if shutil.which("openssl") is None:
            skip_without("This test runs openssl, which is not installed.")
        raw = show(viewer, pages, deliveries.make())
        done = subprocess.run(
            ["/bin/sh", "-c", raw["openssl-title"]],
            env={"WEBHOOK_SECRET": pages.application.webhook_secret, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split()[-1] in viewer.text

    def test_python_lines_compute_the_signature(
        self,
        pages: DashboardWorld,
        deliveries: Deliveries,
        viewer: PageClient,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        raw = show(viewer, pages, deliveries.make())
        headers = dict(line.split(": ", 1) for line in raw["headers-title"].splitlines())

        class Request:
            def get_data(self) -> bytes:
                return raw["body-title"].encode()

        Request.headers = headers  # type: ignore[attr-defined]
        monkeypatch.setenv("WEBHOOK_SECRET", pages.application.webhook_secret)
        names: dict[str, object] = {"request": Request()}
        exec(raw["python-title"], names)  # noqa: S102  what we tell developers to run
        assert names["is_genuine"] is True

    def test_a_secret_that_cannot_be_decrypted_is_reported(
        self, pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
    ) -> None:
        pages.run("update webhook_secrets set encrypted_secret = 'rubbish'")
        show(viewer, pages, deliveries.make())
        assert "This secret cannot be read any more." in viewer.text


def test_request_is_shown_as_the_webhook_service_sends_it(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    with Receiver() as receiver, open_client() as sending:
        pages.run("update applications set webhook_url = %s", receiver.url)
        delivery = deliveries.make("pending", None, tries=0)
        pages.run("update webhook_deliveries set url = %s", receiver.url)
        raw = show(viewer, pages, delivery)
        shown = dict(line.split(": ", 1) for line in raw["headers-title"].splitlines())
        send_one(sending, receiver.url, raw["body-title"].encode(), shown["Service-Signature"])
        (request,) = receiver.requests
    assert {name.lower(): value for name, value in shown.items()} == dict(request.headers)
    assert request.body.decode() == raw["body-title"]


def test_unknown_delivery_is_404(pages: DashboardWorld, viewer: PageClient) -> None:
    for what in (str(uuid4()), "nonsense", "%00", f"{uuid4()}/resend"):
        answer = viewer.open(f"/applications/{pages.application.id}/deliveries/{what}")
        assert answer.status_code in (404, 405), what


def test_script_gets_only_the_partial_of_a_delivery(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    delivery = deliveries.make("pending", None, tries=0)
    address = f"/applications/{pages.application.id}/deliveries/{delivery}"
    first = viewer.open(address, **{"X-Part": "delivery"}).text
    assert "<html" not in first
    assert viewer.open(address, **{"X-Part": "delivery"}).text == first
    deliveries.add_try(delivery, 1, 503, answer=b"later")
    assert "later" in viewer.open(address, **{"X-Part": "delivery"}).text
