# SPDX-License-Identifier: Apache-2.0
"""shunt-xds against gRPC C-core's own xDS client, without shuntd: loopback only, no namespaces.

A Python gRPC channel `xds:///web` takes listener, routes, clusters and endpoints from shunt-xds and
calls Python gRPC servers that answer with their name.
"""

import collections
import subprocess
import time

import pytest

import resources

grpc = pytest.importorskip("grpc")
from xds_server import SHUNT_XDS, WAIT_S, Backend, Serve, world

CALL_TIMEOUT_S = 5


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
        serve.change(*world(backends, {"red": 1}))
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
