# SPDX-License-Identifier: Apache-2.0
"""shunt-xds against gRPC C-core's own xDS client, without shuntd: loopback only, no namespaces.

A Python gRPC channel `xds:///web` takes listener, routes, clusters and endpoints from shunt-xds and
calls Python gRPC servers that answer with their name.
"""

import base64
import collections
import json
import re
import subprocess
import time

import pytest

import resources

grpc = pytest.importorskip("grpc")
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.access_loggers.stream.v3 import stream_pb2 as _stream
from envoy.extensions.filters.http.router.v3 import router_pb2 as _router
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as _manager)
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2 as _tls
from google.protobuf import any_pb2, json_format
from xds_server import SHUNT_XDS, WAIT_S, Backend, Delta, Serve, Sotw, world

JSON_TYPES = (_stream, _router, _manager, _tls)  # looked up by name

CALL_TIMEOUT_S = 20


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
        serve.wait_log("their last good versions are served")
        assert set(count_answers(call, 40)) == {"blue", "green"}


def unknown_to_shunt():
    """A listener with fields, and a type, that Shunt has no use for."""
    listener = resources.listener("web", "routes")
    manager = listener["api_listener"]["api_listener"]
    manager.update(stripAnyHostPort=True, tracing={"randomSampling": {"value": 0.25}})
    manager["access_log"] = [{"name": "log", "typed_config": {
        "@type": resources.TYPES + "extensions.access_loggers.stream.v3.StdoutAccessLog"}}]
    listener.update(perConnectionBufferLimitBytes=32768,
                    metadata={"filter_metadata": {"a": {"b": [1, None]}}})
    secret = {"@type": resources.SECRET, "name": "key",
              "generic_secret": {"secret": {"inline_string": "hush"}}}
    return listener, secret


def encoded(resource):
    """As Google's protobuf writes it."""
    message = any_pb2.Any()
    json_format.ParseDict(resource, message)
    return message


@pytest.mark.parametrize("client", (Sotw, Delta))
def test_what_shunt_does_not_know_is_served_byte_by_byte(serve, client):
    listener, secret = unknown_to_shunt()
    serve.change(listener, secret)
    serve.wait_log("type=Secret")
    with client(serve.address) as stream:
        for resource in (listener, secret):
            stream.subscribe(resource["@type"], resource["name"])
            (entry,) = stream.take().resources
            assert (entry if client is Sotw else entry.resource) == encoded(resource)
        changed = {**secret, "generic_secret": {"secret": {"inline_string": "still"}}}
        serve.change(listener, changed)
        (entry,) = stream.take().resources
        assert (entry if client is Sotw else entry.resource) == encoded(changed)
    assert "left out" not in serve.log.read_text()


def test_secret_that_comes_later_reaches_who_waits_for_it(serve):
    listener, secret = unknown_to_shunt()
    with Sotw(serve.address) as stream:
        stream.subscribe(resources.SECRET, "key")
        stream.assert_quiet()
        serve.change(listener, secret)
        assert list(stream.take().resources) == [encoded(secret)]


def test_misspelled_field_is_an_error_where_all_fields_are_known(serve):
    listener, secret = unknown_to_shunt()
    serve.change(listener, secret)
    serve.wait_log("type=Secret")
    serve.folder.put({**listener, "perConectionBufferLimitBytes": 1})
    serve.wait_log("perConectionBufferLimitBytes: unknown field of envoy.config.listener.v3")
    with Sotw(serve.address) as stream:
        stream.subscribe(resources.LISTENER, "web")
        assert list(stream.take().resources) == [encoded(listener)]


def test_without_descriptors_the_rest_is_served_with_a_warning(tmp_path):
    listener, secret = unknown_to_shunt()
    raw = encoded(secret)
    bare = Serve(tmp_path, listener, {**secret, "name": "other"}, has_descriptors=False)
    try:
        (bare.folder.path / "raw.json").write_text(json.dumps(
            {"@type": raw.type_url, "@raw": base64.b64encode(raw.value).decode()}))
        bare.wait_log("type=Secret")
        log = bare.log.read_text()
        for path in ("perConnectionBufferLimitBytes: ", "stripAnyHostPort: ", "@type: unknown"):
            assert re.search(r"level=warn .*left out.*" + path, log), (path, log)
        with Sotw(bare.address) as stream:
            stream.subscribe(resources.LISTENER, "web")
            (found,) = stream.take().resources
            assert listener_pb2.Listener.FromString(found.value).name == "web"
            stream.subscribe(resources.SECRET, "key", "other")
            assert list(stream.take().resources) == [raw]
    finally:
        bare.stop()


def test_grpc_client_takes_a_listener_that_says_more(serve, backends):
    listener, secret = unknown_to_shunt()
    found = [r for r in world(backends, {"red": 1}) if r["@type"] != resources.LISTENER]
    rds = next(r["name"] for r in found if r["@type"] == resources.ROUTE_CONFIG)
    listener["api_listener"]["api_listener"]["rds"]["route_config_name"] = rds
    serve.change(*found, listener, secret)
    serve.wait_log("type=Secret")
    with serve.channel() as channel:
        assert channel.unary_unary("/a.B/C")(b"", timeout=CALL_TIMEOUT_S) == b"red"
    assert "event=nack" not in serve.log.read_text()


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
