#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An ADS server, state of the world, that first serves one cluster as it should and then sends what
it is told to: responses that cost whoever takes them as they come.

usage: hostile_xds.py IP:PORT BACKEND_IP:PORT PIPE

Takes commands by the line from PIPE: `unknown N`, clusters that nobody asked for, beside the one
that serves; `empty N`, resources without anything in them; `vhosts N`, the routes again, of so many
virtual hosts; `inline N`, the listener again, with them in it; `bare N`, the routes again, of so
many that have a name and a domain alone; `long N`, of one with so many routes; `wide N`, of one with
so many domains. Says {"sent": command, "len": bytes}, then, when the
client has answered, {"answer": command, "error": text}, "" for an ACK.
"""

import concurrent.futures
import json
import queue
import sys
import threading

import grpc
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_components_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from envoy.service.discovery.v3 import discovery_pb2
from google.protobuf import json_format

import ads_agent
import resources


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """One of length and bytes."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def packed(resource):
    message = ads_agent.MESSAGES[resource["@type"]]()
    json_format.ParseDict({k: v for k, v in resource.items() if k != "@type"}, message)
    return message


def any_of(url, value):
    return field(2, field(1, url.encode()) + (field(2, value) if value else b""))


def served(backend):
    host, port = backend.rsplit(":", 1)
    everything = resources.virtual_host("all", ["*"], resources.route("/", "blue"))
    return {resource["@type"]: packed(resource) for resource in (
        resources.listener("web", "routes"), resources.route_config("routes", everything),
        resources.cluster("blue"), resources.endpoints("blue", (host, int(port))))}


class Server(grpc.GenericRpcHandler):
    def __init__(self, base):
        self.base = base
        self.out = None  # to the last client
        self.waiting = {}  # nonce: command
        self.answers = queue.SimpleQueue()
        self.n_sent = 0

    def service(self, handler_call_details):
        if handler_call_details.method != ads_agent.METHOD:
            return None
        return grpc.stream_stream_rpc_method_handler(self.talk)

    def talk(self, requests, context):
        out = self.out = queue.SimpleQueue()
        context.add_callback(lambda: out.put(None))
        threading.Thread(target=self.read, args=(requests, out), daemon=True).start()
        while (message := out.get()) is not None:
            yield message

    def read(self, requests, out):
        told = set()
        try:
            for one in requests:
                request = discovery_pb2.DiscoveryRequest.FromString(one)
                if command := self.waiting.pop(request.response_nonce, None):
                    self.answers.put((command, request.error_detail.message))
                elif request.type_url not in told:
                    told.add(request.type_url)
                    out.put(self.response(request.type_url, b"")[0])
        except Exception:  # pylint: disable=broad-except  # the client has left
            out.put(None)

    def response(self, url, more, with_base=True):
        self.n_sent += 1
        nonce = f"n{self.n_sent}"
        base = any_of(url, self.base[url].SerializeToString()) if with_base else b""
        head = field(1, f"v{self.n_sent}".encode()) + field(4, url.encode())
        return head + base + more + field(5, nonce.encode()), nonce

    def unknown(self, n):
        more = b"".join(any_of(resources.CLUSTER, field(1, b"unknown-%d" % i)) for i in range(n))
        return self.response(resources.CLUSTER, more)

    def empty(self, n):
        return self.response(resources.CLUSTER, b"\x12\x00" * n)

    def routes(self, n):
        routes = self.base[resources.ROUTE_CONFIG].SerializeToString()
        host = route_components_pb2.VirtualHost.FromString(
            self.base[resources.ROUTE_CONFIG].virtual_hosts[0].SerializeToString())
        more = bytearray()
        for i in range(n):
            host.name = f"v{i}"
            host.domains[:] = [f"v{i}.example"]
            more += field(2, host.SerializeToString())
        return routes + bytes(more)

    def vhosts(self, n):
        return self.response(resources.ROUTE_CONFIG, any_of(resources.ROUTE_CONFIG, self.routes(n)), False)

    def inline(self, n):
        listener = listener_pb2.Listener.FromString(self.base[resources.LISTENER].SerializeToString())
        api = listener.api_listener.api_listener
        manager = http_connection_manager_pb2.HttpConnectionManager.FromString(api.value)
        manager.route_config.ParseFromString(self.routes(n))
        api.value = manager.SerializeToString()
        return self.response(resources.LISTENER, any_of(resources.LISTENER, listener.SerializeToString()), False)

    def bare(self, n):
        routes = self.base[resources.ROUTE_CONFIG].SerializeToString()
        more = b"".join(field(2, field(1, b"v%d" % i) + field(2, b"v%d" % i)) for i in range(n))
        return self.response(resources.ROUTE_CONFIG, any_of(resources.ROUTE_CONFIG, routes + more), False)

    def one(self, more):
        """One virtual host more, of these fields and a name and a domain."""
        routes = self.base[resources.ROUTE_CONFIG].SerializeToString()
        host = field(2, field(1, b"large") + field(2, b"large.example") + more)
        return self.response(resources.ROUTE_CONFIG, any_of(resources.ROUTE_CONFIG, routes + host), False)

    def long(self, n):
        to_blue = field(2, field(1, b"blue"))
        return self.one(b"".join(field(3, field(1, field(1, b"/%d" % i)) + to_blue) for i in range(n)))

    def wide(self, n):
        return self.one(b"".join(field(2, b"d%d" % i) for i in range(n)))

    def attack(self, command):
        word, n = command.split()
        message, nonce = getattr(self, word)(int(n))
        self.waiting[nonce] = command
        self.out.put(message)
        say(sent=command, len=len(message))
        command, error = self.answers.get()
        say(answer=command, error=error)


def say(**words):
    print(json.dumps(words), flush=True)


def main(address, backend, pipe):
    server = Server(served(backend))
    listener = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[server],
                           options=[("grpc.max_send_message_length", -1)])
    assert listener.add_insecure_port(address)
    listener.start()
    with open(pipe, encoding="ascii") as commands:
        for line in commands:
            server.attack(line.strip())


if __name__ == "__main__":
    main(*sys.argv[1:])
