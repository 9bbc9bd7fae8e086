"""The upper limit for webhooks: the same signed bodies, built in advance, posted by libcurl and almost nothing else.

Uses `perform` and `select` instead of `socket_action` with our own epoll. If all connections are busy it is faster by a
tenth, because libcurl does not have to report its sockets.
"""

import gc
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from uuid import uuid4

import msgspec
import pycurl

from shared.domain.deliveries.signing import build_body, sign_body, signing_key
from shared.domain.intents.states import EventType

IN_FLIGHT = 100
SECRET = "whsec_of-the-length-that-a-real-one-has-too-0123"  # noqa: S105  a dummy

SignedRequest = tuple[bytes, tuple[str, ...]]
"""A body and its headers."""


class CurlPlan(msgspec.Struct):
    url: str
    count: int


def posts_per_s(url: str, count: int) -> float:
    """Return the rate of a separate process, which keeps its connections open."""
    finished = subprocess.run(
        [sys.executable, "-m", "bench.bare_curl"],
        input=msgspec.json.encode(CurlPlan(url, count)),
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(finished.stdout, type=float)


def run(plan: CurlPlan) -> float:
    posts = [_build_request() for _ in range(plan.count)]
    idle = [_handle(plan.url) for _ in range(IN_FLIGHT)]
    gc.freeze()
    began = perf_counter()
    _send(posts, idle)
    return plan.count / (perf_counter() - began)


def _send(posts: Sequence[SignedRequest], idle: list[pycurl.Curl]) -> None:
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_MAXCONNECTS, IN_FLIGHT)
    add, perform, info_read, remove = multi.add_handle, multi.perform, multi.info_read, multi.remove_handle
    pending, done = iter(posts), 0
    while done < len(posts):
        while idle and (post := next(pending, None)):
            handle = idle.pop()
            handle.setopt(pycurl.POSTFIELDS, post[0])
            handle.setopt(pycurl.HTTPHEADER, post[1])
            add(handle)
        perform()
        _, succeeded, failed = info_read(IN_FLIGHT)
        assert not failed, failed
        for handle in succeeded:
            remove(handle)
        idle += succeeded
        done += len(succeeded)
        if not succeeded:
            multi.select(1.0)


def _handle(url: str) -> pycurl.Curl:
    handle = pycurl.Curl()
    for option, value in (
        (pycurl.URL, url),
        (pycurl.POST, 1),
        (pycurl.USERAGENT, "Mizan"),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
        (pycurl.FAILONERROR, 1),
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROXY, ""),
        (pycurl.WRITEFUNCTION, deque[bytes](maxlen=1).append),  # runs no Python code
    ):
        handle.setopt(option, value)
    return handle


def _build_request() -> SignedRequest:
    body = build_body(str(uuid4()), EventType.CANCELED, str(uuid4()))
    signature = sign_body(body, signing_key(SECRET))
    return body, ("Content-Type: application/json", f"Service-Signature: {signature}", "Expect:")


if __name__ == "__main__":
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=CurlPlan)
    sys.stdout.buffer.write(msgspec.json.encode(run(plan)))
