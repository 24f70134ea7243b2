# SPDX-License-Identifier: Apache-2.0
"""shunt-xds proxy with --state-dir: it starts without its server and serves clients nevertheless.
Loopback only, no namespaces."""

import collections
import time

import pytest

from resources import CLUSTER

grpc = pytest.importorskip("grpc")
from xds_server import Backend, Delta, Proxy, Serve, Sotw, WAIT_S, world

CALL_TIMEOUT_S = 20
FILE = "xds-state"


@pytest.fixture(name="backends", scope="module")
def fixture_backends():
    made = {name: Backend(name) for name in ("blue", "green", "red")}
    yield made
    for backend in made.values():
        backend.server.stop(None)


@pytest.fixture(name="serve")
def fixture_serve(tmp_path, backends):
    started = Serve(tmp_path, *world(backends, {"blue": 75, "green": 25}))
    yield started
    started.stop()


@pytest.fixture(name="proxy", params=("sotw", "delta"))
def fixture_proxy(tmp_path, serve, request):
    (tmp_path / "state").mkdir()
    started = Proxy(tmp_path, serve, request.param, grace_s=1, words=("--state-dir", tmp_path / "state"))
    yield started
    started.stop()


def answers_of(proxy, n):
    with proxy.channel() as channel:
        call = channel.unary_unary("/a.B/C")
        return collections.Counter(call(b"", timeout=CALL_TIMEOUT_S, wait_for_ready=True).decode() for _ in range(n))


def wait_file(tmp_path, later_than=0):
    path = tmp_path / "state" / FILE
    deadline = time.monotonic() + WAIT_S
    while not path.exists() or path.stat().st_mtime_ns <= later_than:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return path


def test_proxy_starts_without_its_server_and_follows_it_again(proxy, serve, backends, tmp_path):
    """OPS-90, OPS-99."""
    with proxy.channel() as channel:  # what no client has any more would not be kept
        assert channel.unary_unary("/a.B/C")(b"", timeout=CALL_TIMEOUT_S) in (b"blue", b"green")
        wait_file(tmp_path)
        serve.kill()
        proxy.stop()
    proxy.start()
    assert set(answers_of(proxy, 100)) == {"blue", "green"}
    assert "from disk" in proxy.log.read_text()
    serve.folder.set(*world(backends, {"red": 1}), *backends["blue"].resources(),
                     *backends["green"].resources())
    with proxy.channel() as channel:
        call = channel.unary_unary("/a.B/C")
        assert call(b"", timeout=CALL_TIMEOUT_S) != b"red"
        serve.start()
        deadline = time.monotonic() + WAIT_S
        while call(b"", timeout=CALL_TIMEOUT_S) != b"red":
            assert time.monotonic() < deadline
    assert "event=nack" not in proxy.log.read_text() + serve.log.read_text()


@pytest.mark.parametrize("stream", (Sotw, Delta))
def test_wildcards_list_is_whole_after_a_start_without_the_server(proxy, serve, tmp_path, stream):
    """OPS-97."""
    with stream(proxy.address) as client:
        client.subscribe(CLUSTER, "*")
        client.take()
        wait_file(tmp_path)
        serve.kill()
        proxy.stop()
    proxy.start()
    with stream(proxy.address) as client:
        client.subscribe(CLUSTER, "*")
        response = client.take()
        assert len(response.resources) == 2, response
    serve.start()


def test_proxy_without_a_directory_to_write_to_serves_and_says_so(serve, tmp_path):
    """OPS-93."""
    proxy = Proxy(tmp_path, serve, words=("--state-dir", tmp_path / "nowhere"))
    try:
        assert set(answers_of(proxy, 100)) == {"blue", "green"}
        proxy.wait_log("xds state not read")
        proxy.wait_log("xds state not written")
    finally:
        proxy.stop()
