# SPDX-License-Identifier: Apache-2.0
"""grpc-go's xDS client takes its configuration from shunt-xds serve, and through shunt-xds proxy.
Without shuntd: loopback only, no namespaces."""

import collections
import json
import os
import subprocess
import time

import pytest

import resources
from go_build import go_build

pytest.importorskip("grpc")
from xds_server import WAIT_S, Backend, Proxy, Serve, world

SPECIAL = {"x-kind": "special"}
METHOD = "/a.B/C"

pytestmark = pytest.mark.timeout(400)  # the client is built once, of many packages


@pytest.fixture(name="program", scope="module")
def fixture_program(tmp_path_factory):
    return go_build("grpcgo", ".", tmp_path_factory.mktemp("grpcgo") / "grpcgo", timeout=380)


@pytest.fixture(name="backends", scope="module")
def fixture_backends():
    made = {name: Backend(name) for name in ("blue", "green", "red")}
    yield made
    for backend in made.values():
        backend.server.stop(None)


@pytest.fixture(name="serve")
def fixture_serve(tmp_path, backends):
    started = Serve(tmp_path, *with_special(backends, {"blue": 75, "green": 25}, "red"))
    yield started
    started.stop()


@pytest.fixture(name="server", params=["serve", "sotw", "delta"])
def fixture_server(serve, tmp_path, request):
    """What the client asks: the server itself, or a proxy before it by that protocol."""
    if request.param == "serve":
        yield serve
        return
    proxy = Proxy(tmp_path, serve, request.param)
    yield proxy
    proxy.stop()


class Client:
    """One channel of grpc-go that is told what to call, by lines."""

    def __init__(self, program, server, log):
        with open(log, "wb") as stderr:
            self.process = subprocess.Popen(
                [program, "xds:///web"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=stderr, text=True, env={
                    **os.environ, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(server.bootstrap())})

    def call(self, count, headers=None):
        """Who answered how many of them; none may fail."""
        batch = {"method": METHOD, "count": count, "headers": headers or {}}
        self.process.stdin.write(json.dumps(batch) + "\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        assert found["failures"] == {}
        assert sum(found["answers"].values()) == count
        return collections.Counter(found["answers"])

    def wait_answers(self, *names):
        """No call fails until these answer, and nobody else."""
        deadline = time.monotonic() + WAIT_S
        while set(found := self.call(40)) != set(names):
            assert time.monotonic() < deadline, found

    def stop(self):
        self.process.stdin.close()
        try:
            assert self.process.wait(WAIT_S) == 0
        finally:
            self.process.kill()
            self.process.stdout.close()


@pytest.fixture(name="client")
def fixture_client(program, server, tmp_path):
    started = Client(program, server, tmp_path / "client.log")
    yield started
    started.stop()


def with_special(backends, weights, special):
    """The world of these weights, in which calls with a header go elsewhere."""
    found = world(backends, weights)
    (name, text), = SPECIAL.items()
    routes = next(r for r in found if r["@type"] == resources.ROUTE_CONFIG)
    routes["virtual_hosts"][0]["routes"].insert(0, resources.route(
        {"prefix": "/", "headers": [{"name": name, "string_match": {"exact": text}}]}, special))
    return found + [r for r in backends[special].resources() if special not in weights]


def test_calls_go_by_weight_and_by_header(client, server):
    answers = client.call(400)
    assert set(answers) == {"blue", "green"}
    assert 240 <= answers["blue"] <= 360  # 300 ± 7 standard deviations
    assert client.call(50, SPECIAL) == {"red": 50}
    assert "event=nack" not in server.log.read_text()


def test_all_clusters_are_replaced_without_a_failed_call(client, server, serve, backends):
    client.wait_answers("blue", "green")
    serve.change(*with_special(backends, {"red": 1}, "green"))
    client.wait_answers("red")
    until = time.monotonic() + 2  # past the moment when the old clusters are taken away
    while time.monotonic() < until:
        assert client.call(20) == {"red": 20}
        assert client.call(20, SPECIAL) == {"green": 20}
    assert "event=nack" not in server.log.read_text() + serve.log.read_text()


def test_calls_go_on_while_the_server_is_gone_and_follow_it_again(client, serve, backends):
    client.wait_answers("blue", "green")
    serve.kill()
    assert set(client.call(100)) == {"blue", "green"}
    # In SotW what a client brings along from an earlier stream can't be known: blue stays there.
    serve.folder.set(*backends["blue"].resources(),
                     *with_special(backends, {"green": 1}, "red"))
    serve.start()
    client.wait_answers("green")
    assert "event=nack" not in serve.log.read_text()
