# SPDX-License-Identifier: Apache-2.0
"""shunt-xds proxy before shunt-xds serve: on the wire, with gRPC C-core's own xDS client, and with
Envoy. Loopback only, no namespaces."""

import collections
import json
import subprocess
import time

import pytest

import resources
from resources import CLUSTER, ENDPOINTS, ROUTE_CONFIG, both, has, lacks, variant

grpc = pytest.importorskip("grpc")
from test_shunt_xds_envoy import BINARY, Envoy
from xds_server import (SHUNT_XDS, WAIT_S, Backend, Delta, Proxy, Serve, Sotw, world)
from test_shunt_xds_streams import hosts, routes

CALL_TIMEOUT_S = 20
UPSTREAM = pytest.mark.parametrize("upstream", ("sotw", "delta"))
STREAMS = pytest.mark.parametrize("stream", (Sotw, Delta))
GRACE_S = 1


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


@pytest.fixture(name="proxy")
def fixture_proxy(tmp_path, serve, upstream):
    started = Proxy(tmp_path, serve, upstream)
    yield started
    started.stop()


@pytest.fixture(name="below")
def fixture_below(tmp_path, proxy, upstream):
    """A second layer."""
    folder = tmp_path / "below"
    folder.mkdir()
    started = Proxy(folder, proxy, upstream)
    yield started
    started.stop()


def count_answers(call, n):
    return collections.Counter(call(b"", timeout=CALL_TIMEOUT_S).decode() for _ in range(n))


def all_become(call, name):
    """The first answer of this backend is followed by no other, past the moments when old clusters are taken away."""
    deadline = time.monotonic() + WAIT_S
    while call(b"", timeout=CALL_TIMEOUT_S) != name.encode():
        assert time.monotonic() < deadline
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert count_answers(call, 20) == {name: 20}


def n_subscribes(serve):
    return serve.log.read_text().count("event=subscribe")


# gRPC C-core

@UPSTREAM
def test_grpc_client_takes_its_routes_through_the_proxy(proxy, serve):
    with proxy.channel() as channel:
        answers = count_answers(channel.unary_unary("/a.B/C"), 400)
        assert set(answers) == {"blue", "green"}
        assert 240 <= answers["blue"] <= 360  # 300 +- 7 standard deviations
    assert "event=nack" not in proxy.log.read_text() + serve.log.read_text()


@UPSTREAM
def test_all_clusters_are_replaced_in_one_change_without_a_failed_call(proxy, serve, backends):
    with proxy.channel() as channel:
        call = channel.unary_unary("/a.B/C")
        count_answers(call, 20)
        serve.change(*world(backends, {"red": 1}))
        all_become(call, "red")


@UPSTREAM
def test_fl_203_a_change_passes_two_layers_of_which_the_first_starts_anew_and_no_call_fails(
        proxy, below, serve, backends):
    with below.channel() as channel:
        call = channel.unary_unary("/a.B/C")
        assert set(count_answers(call, 40)) == {"blue", "green"}
        proxy.kill()
        below.wait_log("ended the stream")
        assert set(count_answers(call, 40)) == {"blue", "green"}
        serve.change(*world(backends, {"red": 1}))  # which nobody hears
        proxy.start()
        all_become(call, "red")
        serve.change(*world(backends, {"blue": 1}))
        all_become(call, "blue")
    assert not any("event=nack" in server.log.read_text() for server in (below, proxy, serve))


@UPSTREAM
def test_late_client_is_served_while_the_upstream_is_dead_and_follows_it_again(
        proxy, serve, backends):
    """TP2-P05: without a word to the upstream."""
    with proxy.channel() as first:
        count_answers(first.unary_unary("/a.B/C"), 20)
        n_before = n_subscribes(serve)
        serve.kill()
        proxy.wait_log("ended the stream")
        with proxy.channel() as late:
            call = late.unary_unary("/a.B/C")
            assert set(count_answers(call, 40)) == {"blue", "green"}
            # A list of clusters in SotW that begins without those in use would take them away.
            serve.folder.set(*world(backends, {"red": 1}), *backends["blue"].resources(),
                             *backends["green"].resources())
            assert n_subscribes(serve) == n_before
            serve.start()
            deadline = time.monotonic() + WAIT_S
            while call(b"", timeout=CALL_TIMEOUT_S) != b"red":
                assert time.monotonic() < deadline
            assert count_answers(first.unary_unary("/a.B/C"), 20) == {"red": 20}


# Envoy

@pytest.mark.skipif(not BINARY.exists(), reason="no Envoy")
@UPSTREAM
@pytest.mark.parametrize("api_type", ("GRPC", "DELTA_GRPC"))
def test_envoy_follows_changes_and_outlives_the_upstream(tmp_path, backends, api_type, upstream):
    envoy = Envoy(tmp_path, api_type, backends, upstream)
    try:
        envoy.wait_port()
        envoy.wait_answer("blue")
        envoy.set({"blue": 1, "green": 1})
        deadline = time.monotonic() + WAIT_S
        while "green" not in (answers := {envoy.ask() for _ in range(50)}):
            assert time.monotonic() < deadline
        assert answers <= {"blue", "green"}
        envoy.set({"red": 1})
        envoy.wait_answer("red")
        until = time.monotonic() + 4  # past the moments when cluster and endpoints are taken away
        while time.monotonic() < until:
            assert envoy.ask() == "red"
        envoy.serve.kill()
        for _ in range(50):
            assert envoy.ask() == "red"
        envoy.set({"red": 1, "green": 1})
        envoy.serve.start()
        envoy.wait_answer("green")
        assert "event=nack" not in envoy.proxy.log.read_text() + envoy.serve.log.read_text()
    finally:
        envoy.stop()


# On the wire

@UPSTREAM
@STREAMS
def test_clients_of_different_parameters_get_their_variants(proxy, serve, stream):
    """TP2-P01, TP2-P02, TP2-P04: one subscription of each (name, parameters) at the upstream."""
    prod, v1 = ("env", "prod"), ("version", "v1")
    serve.folder.set(variant(routes("nn"), both(lacks(*prod), lacks(*v1))),
                     variant(routes("pn"), both(has(*prod), lacks(*v1))),
                     variant(routes("nv"), both(lacks(*prod), has(*v1))),
                     variant(routes("pv"), both(has(*prod), has(*v1))))
    serve.wait_log("names=1 variants=4")
    for env in ("prod", "canary", "test"):
        for version in ("v1", "v2", "v3"):
            expected = ("p" if env == "prod" else "n") + ("v" if version == "v1" else "n")
            for _ in range(2):
                with stream(proxy.address, {"env": env, "version": version}) as client:
                    client.subscribe(ROUTE_CONFIG, "r")
                    assert hosts(client.take()) == [expected]
    assert proxy.log.read_text().count("subscribe to routes") == 9


@UPSTREAM
def test_split_of_a_variant_is_passed_on_in_one_response(proxy, serve, upstream):
    """TP2-P06"""
    prod, v1 = ("env", "prod"), ("version", "v1")
    serve.folder.set(variant(routes("old"), has(*prod)))
    serve.wait_match("(?s)type=routes .*type=routes ")
    with Delta(proxy.address, {"env": "prod", "version": "v1"}) as client:
        client.subscribe(ROUTE_CONFIG, "r")
        assert hosts(client.take()) == ["old"]
        serve.change(variant(routes("new"), both(has(*prod), has(*v1))),
                     variant(routes("other"), both(has(*prod), lacks(*v1))))
        response = client.take()
        assert hosts(response) == ["new"]
        # In SotW an upstream does not say which variant is gone; the newest is the one.
        assert len(response.removed_resource_names) == 1


@pytest.mark.parametrize("upstream", ("delta",))
def test_deletion_and_absence_are_passed_on(proxy, serve):
    serve.folder.set(routes("a"))
    with Delta(proxy.address) as client:
        client.subscribe(ROUTE_CONFIG, "r", "none")
        responses = [client.take()]
        if not (responses[0].resources and responses[0].removed_resources):
            responses.append(client.take())
        assert [e.name for r in responses for e in r.resources] == ["r"]
        assert [n for r in responses for n in r.removed_resources] == ["none"]
        serve.folder.set()
        assert client.take().removed_resources == ["r"]


@UPSTREAM
def test_subscription_that_nobody_has_any_more_is_ended_at_the_upstream(tmp_path, serve, upstream):
    """TP2-P04"""
    proxy = Proxy(tmp_path, serve, upstream, GRACE_S)
    try:
        with Sotw(proxy.address) as first, Sotw(proxy.address) as second:
            first.subscribe(CLUSTER, "blue", "green")
            assert len(first.take().resources) == 2
            second.subscribe(CLUSTER, "blue")
            assert len(second.take().resources) == 1
            serve.wait_log("type=cluster version=0000000000000000 names=2")
            first.close()
            proxy.wait_log('no client subscribes to cluster \\"green\\"')
            serve.wait_match(r"event=(ack|subscribe) type=cluster version=\S+ names=1 ")
        proxy.wait_log('no client subscribes to cluster \\"blue\\"')
        serve.wait_match(r"event=\w+ type=cluster version=\S+ names=0 wildcard=0")
    finally:
        proxy.stop()


@UPSTREAM
@STREAMS
def test_fl_203_who_is_behind_two_layers_hears_what_changed_while_the_first_was_away(proxy, below, serve, stream):
    prod = "env", "prod"
    serve.folder.set(variant(routes("first"), has(*prod)))
    serve.wait_match("(?s)type=routes .*type=routes ")
    with stream(below.address, dict([prod])) as client:
        client.subscribe(ROUTE_CONFIG, "r")
        assert hosts(client.take()) == ["first"]
        serve.folder.set(variant(routes("seen"), has(*prod)))
        assert hosts(client.take()) == ["seen"]
        proxy.kill()
        below.wait_log("ended the stream")
        serve.folder.set(variant(routes("missed"), has(*prod)))
        with stream(below.address, dict([prod])) as late:
            late.subscribe(ROUTE_CONFIG, "r")
            assert hosts(late.take()) == ["seen"]
            proxy.start()
            assert [hosts(each.take()) for each in (client, late)] == [["missed"], ["missed"]]
        client.assert_quiet()


@UPSTREAM
def test_client_that_comes_back_within_the_grace_costs_the_upstream_nothing(proxy, serve):
    with Sotw(proxy.address) as client:
        client.subscribe(ENDPOINTS, "blue")
        client.take()
    n_before = n_subscribes(serve)
    with Delta(proxy.address) as client:
        client.subscribe(ENDPOINTS, "blue")
        assert [entry.name for entry in client.take().resources] == ["blue"]
    assert n_subscribes(serve) == n_before


# What is told on the command line

def run(*args):
    done = subprocess.run([SHUNT_XDS, *args], stderr=subprocess.PIPE, timeout=WAIT_S, check=False)
    return done.returncode, done.stderr.decode()


class Pair:
    """Two servers as one target."""

    def __init__(self, first, second):
        self.first, self.second = first, second

    def bootstrap(self, node):
        made = self.first.bootstrap(node)
        made["xds_servers"][0]["server_uri"] = f"ipv4:{self.first.address},{self.second.address}"
        return made


@UPSTREAM
def test_second_address_of_the_server_is_asked_when_the_first_is_dead(tmp_path, serve, upstream,
                                                                      backends):
    (tmp_path / "second").mkdir()
    second = Serve(tmp_path / "second", *world(backends, {"blue": 50, "green": 50}))
    proxy = Proxy(tmp_path, Pair(serve, second), upstream)
    with Delta(proxy.address) as client:
        client.subscribe(CLUSTER, "blue")
        assert [entry.name for entry in client.take().resources] == ["blue"]
        assert n_subscribes(second) == 0
        serve.kill()
        client.subscribe(CLUSTER, "green")
        assert [entry.name for entry in client.take().resources] == ["green"]
        assert n_subscribes(second) == 1
        serve.start()
    proxy.stop()
    second.stop()


@UPSTREAM
def test_client_with_more_names_than_a_request_may_have_is_sent_away_alone(tmp_path, serve,
                                                                           upstream):
    proxy = Proxy(tmp_path, serve, upstream, max_request_mib=1)
    with Delta(proxy.address) as other, Delta(proxy.address) as greedy:
        other.subscribe(CLUSTER, "blue")
        assert [entry.name for entry in other.take().resources] == ["blue"]
        greedy.subscribe(CLUSTER, *(f"{i:0500}" for i in range(1500)))
        assert greedy.next() is None
        assert greedy.call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        said = greedy.call.details()
        assert said.startswith("client ") and "(ipv4:127.0.0.1:" in said, said
        assert "are the limit" in said, said
        proxy.wait_log(said)
        other.subscribe(CLUSTER, "green")
        assert [entry.name for entry in other.take().resources] == ["green"]
    proxy.stop()
    assert "0" * 500 not in serve.log.read_text()


def test_bad_bootstrap_is_told_with_its_field(tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"xds_servers": [{"server_uri": 3}]}')
    code, said = run("proxy", "--upstream", bad, "--listen", "127.0.0.1:0")
    assert code != 0 and "server_uri" in said and "bad.json" in said
    code, said = run("proxy", "--upstream", tmp_path / "none", "--listen", "127.0.0.1:0")
    assert code != 0 and "No such file" in said


def test_bad_options_are_told(tmp_path):
    good = tmp_path / "good.json"
    good.write_text(json.dumps({"xds_servers": [{
        "server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]}))
    for args, text in (
            (("--upstream", good), "--listen is missing"),
            (("--listen", "127.0.0.1:0"), "--upstream is missing"),
            (("--upstream", good, "--listen", "nowhere"), "nowhere"),
            (("--upstream", good, "--listen", "127.0.0.1:0", "--grace", "1m"), "--grace"),
            (("--upstream", good, "--listen", "127.0.0.1:0", "--max-request", "0"),
             "--max-request"),
            (("--upstream", good, "--listen", "127.0.0.1:0", "--protocol", "x"), "--protocol")):
        code, said = run("proxy", *args)
        assert code != 0 and text in said, said
