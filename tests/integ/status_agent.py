#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that asks a gRPC status port, by Envoy's and gRPC's own messages.

usage: status_agent.py SOCKET IP:PORT

Asked for {op}: `fetch` {**request}, the answer to which is the response of FetchClientStatus as
JSON of protobuf, or {code, details}; `stream` {n}, that many requests on one StreamClientStatus;
`check` {service}; `watch`, which begins a Watch of "" that goes on, and `watched` {n}, which waits for
n statuses of it (or its end) and gives them all; `hold` {n}, which opens n streams of CSDS and leaves
them open.
"""

import json
import sys
import threading

import grpc
from envoy.service.status.v3 import csds_pb2, csds_pb2_grpc
# What may stand in an Any of these tests.
from envoy.config.cluster.v3 import cluster_pb2  # noqa: F401
from envoy.config.endpoint.v3 import endpoint_pb2  # noqa: F401
from envoy.config.listener.v3 import listener_pb2  # noqa: F401
from envoy.config.route.v3 import route_pb2  # noqa: F401
from envoy.extensions.filters.http.fault.v3 import fault_pb2  # noqa: F401
from envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2)  # noqa: F401
from envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2  # noqa: F401
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2  # noqa: F401
from google.protobuf import json_format

import agent

TIMEOUT_S = 20
HEALTH = "/grpc.health.v1.Health/"
STATUS = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


def as_json(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def health_request(service):
    name = service.encode()
    return bytes([0x0a, len(name)]) + name if name else b""


def health_status(message):
    assert message[:1] in (b"", b"\x08") and len(message) in (0, 2), message
    return STATUS[message[1] if message else 0]


class Watch:
    def __init__(self, channel):
        self.changed = threading.Condition()
        self.statuses = []
        self.code = None
        self.call = channel.unary_stream(HEALTH + "Watch")(health_request(""))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for message in self.call:
                with self.changed:
                    self.statuses.append(health_status(message))
                    self.changed.notify_all()
        except grpc.RpcError:
            pass
        with self.changed:
            self.code = self.call.code().name
            self.changed.notify_all()

    def wait(self, number):
        with self.changed:
            self.changed.wait_for(lambda: len(self.statuses) >= number or self.code, TIMEOUT_S)
            return {"statuses": self.statuses, "code": self.code}


class Caller:
    def __init__(self, address):
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", -1)])
        grpc.channel_ready_future(self.channel).result(TIMEOUT_S)
        self.csds = csds_pb2_grpc.ClientStatusDiscoveryServiceStub(self.channel)
        self.watch = None
        self.held = []

    def hold(self, n):
        for _ in range(n):
            over = threading.Event()
            requests = iter(over.wait, True)  # none comes
            self.held.append((over, self.csds.StreamClientStatus(requests)))

    def fetch(self, **fields):
        request = json_format.ParseDict(fields, csds_pb2.ClientStatusRequest())
        return as_json(self.csds.FetchClientStatus(request, timeout=TIMEOUT_S))

    def stream(self, n):
        requests = iter([csds_pb2.ClientStatusRequest()] * n)
        return [as_json(m) for m in self.csds.StreamClientStatus(requests, timeout=TIMEOUT_S)]

    def check(self, service):
        call = self.channel.unary_unary(HEALTH + "Check")
        return health_status(call(health_request(service), timeout=TIMEOUT_S))

    def ask(self, request):
        op = request.pop("op")
        if op == "watch":
            self.watch = Watch(self.channel)
            return None
        if op == "watched":
            return self.watch.wait(request["n"])
        try:
            return getattr(self, op)(**request)
        except grpc.RpcError as error:
            return {"code": error.code().name, "details": error.details()}


def main():
    path, address = sys.argv[1:]
    agent.serve(path, Caller(address).ask)


if __name__ == "__main__":
    main()
