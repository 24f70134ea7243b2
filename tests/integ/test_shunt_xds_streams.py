# SPDX-License-Identifier: Apache-2.0
"""shunt-xds on the wire: state of the world and delta streams from Python gRPC and Envoy's own
protobufs, several clients at once, variants by dynamic parameters (xRFC TP2), and a server that is
killed. Loopback only, no namespaces."""

import pathlib
import random

import pytest

import resources
from resources import CLUSTER, ENDPOINTS, LISTENER, ROUTE_CONFIG, both, has, lacks, variant

grpc = pytest.importorskip("grpc")
from envoy.config.route.v3 import route_pb2
from xds_server import SERVICE, WAIT_S, Delta, Serve, Sotw

N_CLIENTS = 40
PROTOCOLS = pytest.mark.parametrize("protocol", (Sotw, Delta))


@pytest.fixture(name="serve")
def fixture_serve(tmp_path):
    started = Serve(tmp_path)
    yield started
    started.stop()


def routes(host, name="r"):
    """Routes that are told apart by the name of their virtual host."""
    return resources.route_config(name, resources.virtual_host(host, [host]))


def host_of(entry):
    found = route_pb2.RouteConfiguration()
    assert entry.resource.Unpack(found)
    return found.virtual_hosts[0].name


def entries(response):
    """The wrapped resources of a response, whatever its protocol."""
    return Sotw.wrapped(response) if hasattr(response, "version_info") else response.resources


def hosts(response):
    return [host_of(entry) for entry in entries(response)]


@PROTOCOLS
def test_seed_example_gives_each_pair_of_parameters_its_variant(serve, protocol):
    """TP2-C11, over the wire."""
    prod, v1 = ("env", "prod"), ("version", "v1")
    serve.folder.set(variant(routes("nn"), both(lacks(*prod), lacks(*v1))),
                     variant(routes("pn"), both(has(*prod), lacks(*v1))),
                     variant(routes("nv"), both(lacks(*prod), has(*v1))),
                     variant(routes("pv"), both(has(*prod), has(*v1))))
    serve.wait_log("names=1 variants=4")
    for env in ("prod", "canary", "test"):
        for version in ("v1", "v2", "v3"):
            expected = ("p" if env == "prod" else "n") + ("v" if version == "v1" else "n")
            with protocol(serve.address, {"env": env, "version": version, "zone": "z"}) as client:
                client.subscribe(ROUTE_CONFIG, "r")
                response = client.take()
                assert hosts(response) == [expected]
                # The constraints go along (TP2-S02), and no second name (RS-02).
                entry = entries(response)[0]
                assert entry.name == "" and entry.resource_name.name == "r"
                both_of = entry.resource_name.dynamic_parameter_constraints.and_constraints
                assert len(both_of.constraints) == 2


@PROTOCOLS
def test_variant_is_split_for_its_subscribers_only_and_in_one_response(serve, protocol):
    """TP2's transition, TP2-S04, TP2-S05."""
    prod, test = has("env", "prod"), has("env", "test")
    serve.folder.set(variant(routes("prod"), prod), variant(routes("test"), test))
    serve.wait_log("names=1 variants=2")
    with protocol(serve.address, {"env": "prod", "version": "v1"}) as one, \
            protocol(serve.address, {"env": "prod", "version": "v2"}) as two, \
            protocol(serve.address, {"env": "test", "version": "v1"}) as other:
        for client, expected in ((one, "prod"), (two, "prod"), (other, "test")):
            client.subscribe(ROUTE_CONFIG, "r")
            assert hosts(client.take()) == [expected]
        serve.change(variant(routes("prod-1"), both(prod, has("version", "v1"))),
                     variant(routes("prod-2"), both(prod, has("version", "v2"))),
                     variant(routes("test"), test))
        for client, expected in ((one, "prod-1"), (two, "prod-2")):
            response = client.take()
            assert hosts(response) == [expected]
            if protocol is Delta:
                gone = [n.dynamic_parameter_constraints for n in response.removed_resource_names]
                assert [c.constraint.value for c in gone] == ["prod"]
                assert len(client.held) == 1
        other.assert_quiet()


def test_delta_sends_only_what_changed(serve):
    serve.folder.set(*(resources.cluster(f"c{i}") for i in range(20)))
    serve.wait_log("names=20")
    with Delta(serve.address) as client:
        client.subscribe(CLUSTER, "*")
        assert len(client.take().resources) == 20
        serve.folder.put(dict(resources.cluster("c7"), lb_policy="RANDOM"))
        response = client.take()
        assert [entry.name for entry in response.resources] == ["c7"]
        assert not response.removed_resources
        serve.folder.set(*(resources.cluster(f"c{i}") for i in range(19)))
        gone, seen = set(), set()
        while not gone:
            response = client.take()
            gone |= set(response.removed_resources)
            seen |= {entry.name for entry in response.resources}
        assert (gone, seen) == ({"c19"}, {"c7"})
        client.assert_quiet()


def test_types_come_in_make_before_break_order(serve):
    def world(name, host):
        return (resources.cluster(name), resources.endpoints(name, ("127.0.0.1", 1)),
                resources.listener("web", "r-" + name), routes(host))
    serve.change(*world("blue", "old"))
    serve.wait_log("type=routes")
    with Sotw(serve.address) as client:
        for url in (LISTENER, CLUSTER):
            client.subscribe(url)  # the legacy wildcard
            assert len(client.take().resources) == 1
        for url, name in ((ENDPOINTS, "green"), (ROUTE_CONFIG, "r")):
            client.subscribe(url, name)
        assert client.take().type_url == ROUTE_CONFIG
        serve.change(*world("green", "new"))
        found = [client.take() for _ in range(5)]
        assert [r.type_url for r in found] == [CLUSTER, ENDPOINTS, LISTENER, ROUTE_CONFIG, CLUSTER]
        # The old cluster is there until what used it has been replaced.
        assert [len(r.resources) for r in found] == [2, 1, 1, 1, 1]


@PROTOCOLS
def test_refused_resource_is_logged_and_comes_again_when_it_changes(serve, protocol):
    serve.folder.set(resources.cluster("blue"))
    serve.wait_log("type=cluster")
    with protocol(serve.address) as client:
        client.subscribe(CLUSTER, "blue")
        client.refuse(client.next(), "no such color")
        serve.wait_log('event=nack type=cluster')
        assert 'error="no such color"' in serve.log.read_text()
        client.assert_quiet()
        serve.folder.put(dict(resources.cluster("blue"), lb_policy="RANDOM"))
        assert len(client.take().resources) == 1


def test_many_clients_of_both_protocols_are_told(serve):
    serve.folder.set(resources.cluster("blue"))
    serve.wait_log("type=cluster")
    clients = [(Sotw, Delta)[i % 2](serve.address) for i in range(N_CLIENTS)]
    for client in clients:
        client.subscribe(CLUSTER, "blue")
    for client in clients:
        assert len(client.take().resources) == 1
    serve.folder.put(dict(resources.cluster("blue"), lb_policy="RANDOM"))
    for client in clients:
        assert len(client.take().resources) == 1
        client.close()


def test_overlap_is_refused_and_what_was_is_served(serve):
    """TP2-S06."""
    first = variant(routes("a"), has("env", "prod"))
    serve.folder.set(first)
    serve.wait_log("names=1 variants=1")
    with Delta(serve.address, {"env": "prod", "version": "v1"}) as client:
        client.subscribe(ROUTE_CONFIG, "r")
        assert hosts(client.take()) == ["a"]
        serve.folder.put(variant(routes("b"), has("version", "v1")))
        serve.wait_log("both match {env=prod, version=v1}")
        line = next(l for l in serve.log.read_text().splitlines() if "both match" in l)
        names = sorted(path.name for path in pathlib.Path(serve.folder.path).glob("*.json"))
        assert len(names) == 2 and all(name in line for name in names)
        client.assert_quiet()


def test_overlap_at_the_start_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="both match {env=prod, zone=z}"):
        Serve(tmp_path, variant(routes("a"), has("env", "prod")),
              variant(routes("b"), has("zone", "z"))).stop()


def test_killed_server_comes_back_with_nothing_to_tell(serve):
    """DL-02, DL-13: versions are the same after a restart."""
    prod = has("env", "prod")
    serve.folder.set(variant(routes("a"), prod), resources.cluster("blue"),
                     resources.cluster("green"))
    serve.wait_log("type=routes")
    params = {"env": "prod"}
    with Delta(serve.address, params) as client:
        client.subscribe(CLUSTER, "*")
        client.subscribe(ROUTE_CONFIG, "r")
        client.take()
        client.take()
        held = client.held
        serve.kill()
        assert client.next() is None
    serve.start()
    with Delta(serve.address, params, held) as client:
        client.subscribe(ROUTE_CONFIG, "r")
        client.assert_quiet()
    serve.kill()
    serve.folder.set(variant(routes("b"), both(prod, lacks("version", "v1"))),
                     resources.cluster("green"))
    serve.start()
    with Delta(serve.address, params, held) as client:
        client.subscribe(ROUTE_CONFIG, "r")
        response = client.take()
        assert hosts(response) == ["b"]
        # What it held was another variant, which goes in the same response.
        assert len(response.removed_resource_names) == 1
        client.subscribe(CLUSTER, "*")
        while not (response := client.take()).removed_resources:
            assert not response.resources
        assert list(response.removed_resources) == ["blue"]
        assert {name for _, name, _ in held} == {"r", "green"}


def test_rubbish_ends_the_stream_that_sent_it_and_no_other(serve):
    serve.folder.set(resources.cluster("blue"))
    serve.wait_log("type=cluster")
    chance = random.Random(7)
    with Delta(serve.address) as client, grpc.insecure_channel(serve.address) as channel:
        client.subscribe(CLUSTER, "blue")
        client.take()
        for round_ in range(40):
            method = ("StreamAggregatedResources", "DeltaAggregatedResources")[round_ % 2]
            message = bytes([0x0a, 0xff]) + chance.randbytes(chance.randrange(200))
            with pytest.raises(grpc.RpcError) as caught:
                list(channel.stream_stream(SERVICE + method)(iter([message]), timeout=WAIT_S))
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        with pytest.raises(grpc.RpcError) as caught:
            list(channel.stream_stream("/a.B/C")(iter([b""]), timeout=WAIT_S))
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
        serve.folder.put(dict(resources.cluster("blue"), lb_policy="RANDOM"))
        assert len(client.take().resources) == 1
