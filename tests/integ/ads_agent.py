#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that is an xDS management server (ADS, state of the world). It serves
whatever it is told to, right or wrong, out of the whole Envoy API and not only what Shunt knows of
it, and tells what each client said to it.

usage: ads_agent.py SOCKET IP:PORT

Asked for {wanted, put, patch, raw, wait_s}: `wanted` is [[type, name]], which all clients are to have asked for and
answered to before anything is put; `put` are resources in protobuf's JSON form with "@type";
`patch` is [[number of the resource, path within it, hex]], bytes to be merged into the message
there; `raw` is [[type, name, hex]], whole resources. What is put stays until it is replaced. The
answer is {client: "" = accepted | the text of its refusal}, of all clients that were subscribed.
"""

import concurrent.futures
import queue
import re
import sys
import threading

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.endpoint.v3 import endpoint_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.clusters.aggregate.v3 import cluster_pb2 as _aggregate
from envoy.extensions.filters.http.buffer.v3 import buffer_pb2 as _buffer
from envoy.extensions.filters.http.fault.v3 import fault_pb2 as _fault
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as _rbac
from envoy.extensions.filters.http.router.v3 import router_pb2 as _router
from envoy.extensions.filters.http.stateful_session.v3 import stateful_session_pb2 as _session
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as _manager)
from envoy.extensions.http.stateful_session.cookie.v3 import cookie_pb2 as _cookie
from envoy.extensions.http.stateful_session.header.v3 import header_pb2 as _header
from envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3 import (
    client_side_weighted_round_robin_pb2 as _weighted)
from envoy.extensions.load_balancing_policies.cluster_provided.v3 import (
    cluster_provided_pb2 as _provided)
from envoy.extensions.load_balancing_policies.least_request.v3 import (
    least_request_pb2 as _least_request)
from envoy.extensions.load_balancing_policies.maglev.v3 import maglev_pb2 as _maglev
from envoy.extensions.load_balancing_policies.pick_first.v3 import pick_first_pb2 as _pick_first
from envoy.extensions.load_balancing_policies.ring_hash.v3 import ring_hash_pb2 as _ring_hash
from envoy.extensions.load_balancing_policies.round_robin.v3 import round_robin_pb2 as _round_robin
from envoy.extensions.load_balancing_policies.wrr_locality.v3 import wrr_locality_pb2 as _locality
from envoy.extensions.path.match.uri_template.v3 import uri_template_match_pb2 as _template
from envoy.extensions.transport_sockets.http_11_proxy.v3 import (
    upstream_http_11_connect_pb2 as _http_proxy)
from envoy.extensions.transport_sockets.raw_buffer.v3 import raw_buffer_pb2 as _raw_buffer
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2 as _tls
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2 as _options
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf import any_pb2, json_format
from udpa.type.v1 import typed_struct_pb2 as _udpa_struct
from xds.type.v3 import typed_struct_pb2 as _xds_struct

import agent

# The types inside google.protobuf.Any: to import them is to make them known.
KNOWN = (_aggregate, _buffer, _cookie, _fault, _header, _http_proxy, _least_request, _locality, _maglev,
         _manager, _options, _pick_first, _provided, _raw_buffer, _rbac, _ring_hash, _round_robin, _router,
         _session, _template, _tls, _udpa_struct, _weighted, _xds_struct)
PREFIX = "type.googleapis.com/"
MESSAGES = {PREFIX + m.DESCRIPTOR.full_name: m for m in (
    listener_pb2.Listener, route_pb2.RouteConfiguration, cluster_pb2.Cluster,
    endpoint_pb2.ClusterLoadAssignment)}
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
STEP = re.compile(r"([a-z_0-9]+)|\[(\d+)\]")


def inner(message, path):
    """The message at a path such as a.b[0]."""
    for name, index in STEP.findall(path):
        message = message[int(index)] if index else getattr(message, name)
    return message


class Server:
    def __init__(self):
        self.lock = threading.Condition()
        self.resources = {url: {} for url in MESSAGES}  # name: Any
        self.versions = {url: 0 for url in MESSAGES}
        self.streams = []
        self.copies = 1  # of each resource in a response

    def put(self, url, name, value):
        self.resources[url][name] = any_pb2.Any(type_url=url, value=value)
        return url

    def put_json(self, resource, patches):
        url = resource["@type"]
        message = MESSAGES[url]()
        json_format.ParseDict({k: v for k, v in resource.items() if k != "@type"}, message)
        for path, text in patches:
            inner(message, path).MergeFromString(bytes.fromhex(text))
        name = resource.get("cluster_name") or resource["name"]
        return self.put(url, name, message.SerializeToString())

    def wait(self, is_so, seconds, what):
        """what(): what was waited for, by the state at the end."""
        if not self.lock.wait_for(is_so, seconds):
            raise TimeoutError(what())

    @staticmethod
    def silent(waiting):
        """The clients that have not said anything to the last response of a type."""
        return sorted({stream.client for stream, url in waiting if stream.verdict(url) is None})

    def ignorant(self, url, name):
        """The clients that have not asked for a resource."""
        return sorted(stream.client for stream in self.streams if not stream.knows(url, name))

    def publish(self, request):
        wait_s = request.get("wait_s", 20)
        with self.lock:
            for url, name in request.get("wanted", []):
                self.wait(lambda u=url, n=name: self.streams and all(stream.knows(u, n) for stream in self.streams),
                          wait_s, lambda u=url, n=name: f"{n} was not asked for by {self.ignorant(u, n)}")
            self.copies = request.get("copies", 1)
            patches = request.get("patch", [])
            changed = {self.put_json(resource, [p[1:] for p in patches if p[0] == number])
                       for number, resource in enumerate(request.get("put", []))}
            changed |= {self.put(url, name, bytes.fromhex(text))
                        for url, name, text in request.get("raw", [])}
            waiting = []
            for url in changed:
                self.versions[url] += 1
                waiting += [(stream, url) for stream in self.streams if stream.send(url)]
            self.wait(lambda: not self.silent(waiting), wait_s, lambda: f"no answer of {self.silent(waiting)}")
            return {stream.client: stream.verdict(url) for stream, url in waiting}

    def handle(self, requests, context):
        stream = Stream(self)
        with self.lock:
            self.streams.append(stream)
        context.add_callback(lambda: self.end(stream))
        threading.Thread(target=stream.read, args=(requests,), daemon=True).start()
        while (response := stream.outgoing.get()) is not None:
            yield response

    def end(self, stream):
        with self.lock:
            if stream in self.streams:
                self.streams.remove(stream)
            self.lock.notify_all()
        stream.outgoing.put(None)


class Stream:
    """One client. All but read() is called with the server's lock held."""

    def __init__(self, server):
        self.server = server
        self.client = ""
        self.outgoing = queue.Queue()
        self.names = {}  # type: the names asked for
        self.nonces = {}  # type: of the last response
        self.verdicts = {}  # type: on the last response; None = none yet

    def read(self, requests):
        try:
            for request in requests:
                with self.server.lock:
                    self.take(discovery_pb2.DiscoveryRequest.FromString(request))
                    self.server.lock.notify_all()
        except grpc.RpcError:
            pass
        self.server.end(self)

    def take(self, request):
        url = request.type_url
        self.client = self.client or request.node.user_agent_name
        names = list(request.resource_names)
        if request.response_nonce and request.response_nonce == self.nonces.get(url):
            refused = request.HasField("error_detail")
            self.verdicts[url] = request.error_detail.message or "?" if refused else ""
        if url in MESSAGES and names != self.names.get(url):
            added = set(names) - set(self.names.get(url, ()))
            self.names[url] = names
            if added or not names:
                self.send(url)

    def send(self, url):
        """False when the client did not ask for the type."""
        if url not in self.names:
            return False
        held = self.server.resources[url]
        names = self.names[url] or list(held)
        version = str(self.server.versions[url])
        nonce = str(int(self.nonces.get(url, 0)) + 1)
        self.nonces[url], self.verdicts[url] = nonce, None
        self.outgoing.put(discovery_pb2.DiscoveryResponse(
            version_info=version, type_url=url, nonce=nonce,
            resources=[held[name] for name in names if name in held for _ in range(
                self.server.copies)]).SerializeToString())
        return True

    def knows(self, url, name):
        return name in self.names.get(url, ()) and self.verdict(url) is not None

    def verdict(self, url):
        return self.verdicts.get(url) if self in self.server.streams else "gone"


class Handler(grpc.GenericRpcHandler):
    def __init__(self, server):
        self.server = server

    def service(self, handler_call_details):
        if handler_call_details.method != METHOD:
            return None
        return grpc.stream_stream_rpc_method_handler(self.server.handle)


def main():
    path, address = sys.argv[1:]
    server = Server()
    grpc_server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), handlers=[Handler(server)])
    if grpc_server.add_insecure_port(address) == 0:
        sys.exit(f"cannot listen on {address}")
    grpc_server.start()
    agent.serve(path, server.publish)


if __name__ == "__main__":
    main()
