# SPDX-License-Identifier: Apache-2.0
"""An ADS server, SotW and delta, of one listener, a route a cluster and so many clusters of so many
endpoints. Its clients are shuntd; or, with a port for the listener, Envoy. tools/bench and the
integration tests run it.

Says {"port": …} when it listens. Takes commands by the line: `go` lets it answer, which it does not do
before, and it says {"first_byte_ns": …} when the first response leaves. `churn RATE SECONDS CHANGING`
sends RATE responses a second, each with one cluster's endpoints, of which the first is another one than
before; CHANGING clusters take turns. At the end of it: {"sent": …, "seconds": …}.
"""

import argparse
import concurrent.futures
import itertools
import json
import queue
import threading
import time

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_components_pb2, route_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf import any_pb2

SERVICE = "envoy.service.discovery.v3.AggregatedDiscoveryService"
URL = "type.googleapis.com/"
LISTENER = URL + "envoy.config.listener.v3.Listener"
ROUTES = URL + "envoy.config.route.v3.RouteConfiguration"
CLUSTER = URL + "envoy.config.cluster.v3.Cluster"
ENDPOINTS = URL + "envoy.config.endpoint.v3.ClusterLoadAssignment"
BACKEND_PORT = 8080


def name_of(cluster):
    return f"cluster-{cluster:05}"


def packed(message):
    wrapper = any_pb2.Any()
    wrapper.Pack(message)
    return wrapper


def routes(n):
    """The requests of cluster I begin with /I/; what is none's goes to the first one."""
    everything = route_components_pb2.VirtualHost(name="all", domains=["*"])
    for i in range(n):
        everything.routes.add(match=route_components_pb2.RouteMatch(prefix=f"/{i}/"),
                              route=route_components_pb2.RouteAction(cluster=name_of(i)))
    everything.routes.add(match=route_components_pb2.RouteMatch(prefix="/"),
                          route=route_components_pb2.RouteAction(cluster=name_of(0)))
    return route_pb2.RouteConfiguration(name="routes", virtual_hosts=[everything])


def manager():
    http = http_connection_manager_pb2.HttpConnectionManager(stat_prefix="web")
    http.http_filters.add(name="router").typed_config.Pack(router_pb2.Router())
    return http


def api_listener():
    http = manager()
    http.rds.route_config_name = "routes"
    http.rds.config_source.ads.SetInParent()
    listener = listener_pb2.Listener(name="web")
    listener.api_listener.api_listener.Pack(http)
    return listener


def envoy_listener(n, port):
    """The same, on a socket, as Envoy takes it."""
    http = manager()
    http.route_config.CopyFrom(routes(n))
    listener = listener_pb2.Listener(name="web")
    listener.address.socket_address.address = "127.0.0.1"
    listener.address.socket_address.port_value = port
    listener.filter_chains.add().filters.add(name="http").typed_config.Pack(http)
    return listener


def eds_cluster(i, on_demand):
    """on_demand: of a policy that connects to nobody before there are requests."""
    cluster = cluster_pb2.Cluster(name=name_of(i), type=cluster_pb2.Cluster.EDS)
    if on_demand:
        cluster.lb_policy = cluster_pb2.Cluster.RING_HASH
        cluster.ring_hash_lb_config.minimum_ring_size.value = 1
        cluster.ring_hash_lb_config.maximum_ring_size.value = 16
    cluster.eds_cluster_config.eds_config.ads.SetInParent()
    cluster.eds_cluster_config.eds_config.resource_api_version = 2
    return cluster


def endpoint_address(i, j, version, n_endpoints):
    """Of endpoint j of cluster i. The first one is at another address in each version. Where it is the only one, so
    many clusters fit into the backends' network as may be."""
    place = 10 + version % 6 if j == 0 and version else j
    number = i * 16 + place if n_endpoints > 1 else 16 + i * 6 + version % 6
    return f"10.{82 + (number >> 16)}.{number >> 8 & 255}.{number & 255}", BACKEND_PORT


def assignment(i, n_endpoints, version=0):
    load = endpoint_pb2.ClusterLoadAssignment(cluster_name=name_of(i))
    locality = load.endpoints.add()
    locality.locality.region = "here"
    locality.load_balancing_weight.value = 1
    for j in range(n_endpoints):
        address = locality.lb_endpoints.add().endpoint.address.socket_address
        address.address, address.port_value = endpoint_address(i, j, version, n_endpoints)
    return load


def static_cluster(i, n_endpoints):
    cluster = cluster_pb2.Cluster(name=name_of(i), type=cluster_pb2.Cluster.STATIC)
    cluster.load_assignment.CopyFrom(assignment(i, n_endpoints))
    return cluster


class World:
    """What is served, by type and name."""

    def __init__(self, n_clusters, n_endpoints, envoy_port, on_demand):
        self.n_endpoints = n_endpoints
        listener = envoy_listener(n_clusters, envoy_port) if envoy_port else api_listener()
        self.types = {
            LISTENER: {"web": packed(listener)},
            ROUTES: {"routes": packed(routes(n_clusters))},
            CLUSTER: {name_of(i): packed(eds_cluster(i, on_demand)) for i in range(n_clusters)},
            ENDPOINTS: {name_of(i): packed(assignment(i, n_endpoints)) for i in range(n_clusters)},
        }
        self.go = threading.Event()
        self.sent_first = False

    def find(self, type_url, name):
        return self.types.get(type_url, {}).get(name)

    def note_first(self):
        if not self.sent_first:
            self.sent_first = True
            say(first_byte_ns=time.monotonic_ns())


class Stream:
    """One client. `out` is what goes to it; None ends it."""

    def __init__(self, world, delta):
        self.world = world
        self.delta = delta
        self.out = queue.SimpleQueue()
        self.known = {}  # type: names that the client was sent
        self.nonces = itertools.count(1)

    def answer(self, request):
        known = self.known.setdefault(request.type_url, set())
        if self.delta:
            asked = list(request.resource_names_subscribe)
        else:
            asked = list(request.resource_names)
        if (not asked or asked == ["*"]) and not known and not request.response_nonce:
            asked = list(self.world.types.get(request.type_url, {}))
        asked = [n for n in asked if n not in known]
        if not asked:
            return
        known.update(asked)
        # In state of the world a response has all clusters, so that none seems to be deleted.
        names = asked if self.delta or request.type_url not in (LISTENER, CLUSTER) else sorted(known)
        self.send(request.type_url, names, "1")

    def send(self, type_url, names, version):
        found = [(n, r) for n in names if (r := self.world.find(type_url, n)) is not None]
        nonce = str(next(self.nonces))
        if self.delta:
            response = discovery_pb2.DeltaDiscoveryResponse(type_url=type_url, nonce=nonce)
            for name, resource in found:
                response.resources.add(name=name, version=version, resource=resource)
        else:
            response = discovery_pb2.DiscoveryResponse(
                type_url=type_url, nonce=nonce, version_info=version, resources=[r for _, r in found])
        self.out.put(response.SerializeToString())


class Service(grpc.GenericRpcHandler):
    def __init__(self, world):
        self.world = world
        self.streams = []

    def service(self, handler_call_details):
        method = handler_call_details.method.rsplit("/", 1)[1]
        kinds = {"StreamAggregatedResources": (False, discovery_pb2.DiscoveryRequest),
                 "DeltaAggregatedResources": (True, discovery_pb2.DeltaDiscoveryRequest)}
        if method not in kinds:
            return None
        delta, request = kinds[method]
        return grpc.stream_stream_rpc_method_handler(
            lambda requests, context: self.talk(requests, delta), request_deserializer=request.FromString)

    def talk(self, requests, delta):
        stream = Stream(self.world, delta)

        def read():
            try:
                for request in requests:
                    self.world.go.wait()
                    stream.answer(request)
            except Exception:  # pylint: disable=broad-except  # the client has left
                pass
            stream.out.put(None)
        self.streams.append(stream)
        threading.Thread(target=read, daemon=True).start()
        while (message := stream.out.get()) is not None:
            self.world.note_first()
            yield message
        self.streams.remove(stream)

    def churn(self, rate, seconds, changing):
        start = time.monotonic()
        sent = 0
        while sent < rate * seconds:
            due = min(int((time.monotonic() - start) * rate) + 1, rate * seconds)
            for number in range(sent, due):
                i, version = number % changing, number // changing + 1
                self.world.types[ENDPOINTS][name_of(i)] = packed(
                    assignment(i, self.world.n_endpoints, version))
                for stream in list(self.streams):
                    stream.send(ENDPOINTS, [name_of(i)], str(version + 1))
            sent = due
            time.sleep(0.0005)
        say(sent=sent, seconds=time.monotonic() - start)


def say(**words):
    print(json.dumps(words), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clusters", type=int)
    parser.add_argument("endpoints", type=int, help="of each, 10 at most")
    parser.add_argument("--envoy-port", type=int, default=0)
    parser.add_argument("--on-demand", action="store_true", help="ring_hash with small rings, not round_robin")
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--commands", default="/dev/stdin", help="file or named pipe to read them from")
    args = parser.parse_args()
    world = World(args.clusters, args.endpoints, args.envoy_port, args.on_demand)
    service = Service(world)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[service],
                         options=[("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)])
    say(port=server.add_insecure_port(args.listen))
    server.start()
    with open(args.commands, encoding="ascii") as commands:
        for line in commands:
            words = line.split()
            if words[0] == "go":
                world.go.set()
            elif words[0] == "churn":
                service.churn(*map(int, words[1:]))
    server.stop(None)


if __name__ == "__main__":
    main()
