# SPDX-License-Identifier: Apache-2.0
"""shunt-xds against gRPC C-core's own xDS client, without shuntd: loopback only, no namespaces.

A Python gRPC channel `xds:///web` takes listener, routes, clusters and endpoints from shunt-xds and
calls Python gRPC servers that answer with their name.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

import resources

grpc = pytest.importorskip("grpc")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SHUNT_BUILD", ROOT / "build"))
SHUNT_XDS = BUILD / "tools" / "shunt-xds" / "shunt-xds"
BOOTSTRAP_ARG = "grpc.TEST_ONLY_DO_NOT_USE_IN_PROD.xds_bootstrap_config"
WAIT_S = 10
CALL_TIMEOUT_S = 5


class Backend(grpc.GenericRpcHandler):
    """Answers every method with its name."""

    def __init__(self, name):
        self.name = name
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[self])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def service(self, _):
        return grpc.unary_unary_rpc_method_handler(lambda *_: self.name.encode())

    def resources(self):
        cluster = resources.cluster(self.name)
        return cluster, resources.endpoints(self.name, ("127.0.0.1", self.port))


class Serve:
    """A running shunt-xds and the folder it serves."""

    def __init__(self, path, *initial):
        self.folder = resources.Folder(path / "xds")
        self.folder.set(*initial)
        self.log = path / "log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command(), stderr=log)
        self.wait_log('msg="serving"')

    def command(self):
        return [SHUNT_XDS, "serve", self.folder.path, "--listen", self.address]

    def wait_log(self, text):
        deadline = time.monotonic() + WAIT_S
        while text not in self.log.read_text():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)

    def channel(self):
        server = {"server_uri": self.address, "channel_creds": [{"type": "insecure"}],
                  "server_features": ["xds_v3"]}
        bootstrap = {"xds_servers": [server], "node": {"id": "test"}}
        return grpc.insecure_channel("xds:///web", [(BOOTSTRAP_ARG, json.dumps(bootstrap))])


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
    started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(WAIT_S) == 0


def world(backends, weights):
    """All resources of a frontend that spreads calls by these weights."""
    clusters = [{"name": name, "weight": weight} for name, weight in weights.items()]
    action = {"weighted_clusters": {"clusters": clusters, "total_weight": sum(weights.values())}}
    route = {"match": {"prefix": "/"}, "route": action}
    found = [resources.listener("web", "r"),
             resources.route_config("r", resources.virtual_host("all", ["*"], route))]
    for name in weights:
        found += backends[name].resources()
    return found


def count_answers(call, n):
    return collections.Counter(call(b"", timeout=CALL_TIMEOUT_S).decode() for _ in range(n))


def test_grpc_client_takes_its_routes(serve):
    with serve.channel() as channel:
        answers = count_answers(channel.unary_unary("/a.B/C"), 400)
    assert set(answers) == {"blue", "green"}
    assert 240 <= answers["blue"] <= 360  # 300 ± 7 standard deviations


def test_all_clusters_are_replaced_in_one_change_without_a_failed_call(serve, backends):
    with serve.channel() as channel:
        call = channel.unary_unary("/a.B/C")
        count_answers(call, 20)
        serve.folder.set(*world(backends, {"red": 1}))
        deadline = time.monotonic() + WAIT_S
        while call(b"", timeout=CALL_TIMEOUT_S) != b"red":
            assert time.monotonic() < deadline
        until = time.monotonic() + 2  # past the moment when the old clusters are taken away
        while time.monotonic() < until:
            assert count_answers(call, 20) == {"red": 20}
    assert serve.log.read_text().count('msg="resources" type=cluster') == 2


def test_bad_file_is_named_and_changes_nothing(serve):
    with serve.channel() as channel:
        call = channel.unary_unary("/a.B/C")
        count_answers(call, 20)
        bad = serve.folder.path / "bad.json"
        bad.write_text('{"@type": "%s",\n "name": 3}' % resources.CLUSTER)
        serve.wait_log('file="bad.json" error="name: not text"')
        serve.wait_log("what they were is served")
        assert set(count_answers(call, 40)) == {"blue", "green"}


def test_refused_version_is_logged(serve):
    with serve.channel() as channel:
        call = channel.unary_unary("/a.B/C")
        count_answers(call, 20)
        refused = dict(resources.cluster("blue"), type="STATIC")
        serve.folder.put(refused)
        serve.wait_log("event=nack type=cluster")
        assert set(count_answers(call, 40)) == {"blue", "green"}


def test_taken_port_is_told(serve):
    second = subprocess.run(serve.command(), stderr=subprocess.PIPE, timeout=WAIT_S, check=False)
    assert second.returncode != 0
    assert b"its port is taken" in second.stderr


def test_missing_folder_is_told(tmp_path):
    command = [SHUNT_XDS, tmp_path / "none", "--listen", "127.0.0.1:0"]
    run = subprocess.run(command, stderr=subprocess.PIPE, timeout=WAIT_S, check=False)
    assert run.returncode != 0
    assert b"No such file or directory" in run.stderr
