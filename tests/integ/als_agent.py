#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that is an access log service (Envoy's ALS by gRPC).

usage: als_agent.py SOCKET IP:PORT

It is asked for {op}: `entries`, all that came so far, each as protobuf's JSON with its field names, and with `log`
and `node` of the stream that it came on; `count`: how many `entries`, `streams` and `messages` there were. `stop`: it
goes away with all streams; `start`: it is there again, with what it had heard. `pause`: it reads nothing, until
`resume`. The messages are read by protobuf's own parser with Envoy's own descriptors.
"""

import concurrent.futures
import sys
import threading

import grpc
from envoy.service.accesslog.v3 import als_pb2
from google.protobuf.json_format import MessageToDict

import agent

METHOD = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"
STREAMS = 16


class Service:
    def __init__(self, address):
        self.address = address
        self.lock = threading.Lock()
        self.entries = []  # each with whose it is; dicts are made when asked for, since many keep a core busy for long
        self.streams = self.messages = 0
        self.fault = None  # the first thing that is not as the protocol has it
        self.reads = threading.Event()
        self.reads.set()
        self.start()

    def start(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(STREAMS), options=[("grpc.so_reuseport", 0)])
        self.server.add_generic_rpc_handlers((self,))
        assert self.server.add_insecure_port(self.address)
        self.server.start()

    def service(self, details):
        if details.method != METHOD:
            return None
        return grpc.stream_unary_rpc_method_handler(
            self.hear, als_pb2.StreamAccessLogsMessage.FromString,
            als_pb2.StreamAccessLogsResponse.SerializeToString)

    def hear(self, messages, _context):
        who = None
        with self.lock:
            self.streams += 1
        for message in messages:
            self.reads.wait()
            if message.HasField("identifier") != (who is None):
                self.fault = self.fault or "the identifier is in the first message alone"
            if who is None:
                who = {"log": message.identifier.log_name, "node": message.identifier.node.id}
            made = [(entry, who) for entry in message.http_logs.log_entry]
            if not made:
                self.fault = self.fault or "a message is empty"
            with self.lock:
                self.entries += made
                self.messages += 1
        return als_pb2.StreamAccessLogsResponse()

    def stop(self):
        self.server.stop(0).wait()

    def ask(self, request):
        act = {"stop": self.stop, "start": self.start, "pause": self.reads.clear, "resume": self.reads.set}
        if request["op"] in act:
            act[request["op"]]()
            return None
        assert not self.fault, self.fault
        with self.lock:
            if request["op"] == "count":
                return {"entries": len(self.entries), "streams": self.streams, "messages": self.messages}
            return [{**MessageToDict(entry, preserving_proto_field_name=True), **who} for entry, who in self.entries]


def main():
    agent.serve(sys.argv[1], Service(sys.argv[2]).ask)


if __name__ == "__main__":
    main()
