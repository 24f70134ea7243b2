#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that is a collector of traces (OTLP by gRPC), or a client that tells what its backend saw.

usage: otlp_agent.py SOCKET [IP:PORT]

The collector, with an address, is asked for {op}: `spans`, all that it took so far, each with its resource's
attributes; `answer` with `code`, with which it answers from now on, 0: it takes what comes. The messages are read by
protobuf's own parser with OpenTelemetry's own descriptors. The client is asked for {target, path, metadata, calls}:
what the last call ended with, and the metadata that the backend says it got.
"""

import concurrent.futures
import json
import sys
import threading

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

import agent

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
CODES = {code.value[0]: code for code in grpc.StatusCode}
TIMEOUT_S = 20


def value_of(value):
    return getattr(value, value.WhichOneof("value"))


def attributes_of(pairs):
    found = {pair.key: value_of(pair.value) for pair in pairs}
    assert len(found) == len(pairs), "keys are unique"
    return found


def span_of(span, resource):
    return {"trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
            "name": span.name, "kind": span.SpanKind.Name(span.kind), "resource": resource,
            "began_ns": span.start_time_unix_nano, "ended_ns": span.end_time_unix_nano,
            "error": span.status.code == span.status.STATUS_CODE_ERROR, **attributes_of(span.attributes)}


class Collector:
    def __init__(self, address):
        self.lock = threading.Lock()
        self.spans = []
        self.code = 0
        self.tries = 0
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        server.add_generic_rpc_handlers((self,))
        assert server.add_insecure_port(address)
        server.start()
        self.server = server

    def service(self, details):
        if details.method != EXPORT:
            return None
        return grpc.unary_unary_rpc_method_handler(
            self.export, trace_service_pb2.ExportTraceServiceRequest.FromString,
            trace_service_pb2.ExportTraceServiceResponse.SerializeToString)

    def export(self, request, context):
        with self.lock:
            self.tries += 1
            if self.code:
                context.abort(CODES[self.code], "as told")
            for of_resource in request.resource_spans:
                resource = attributes_of(of_resource.resource.attributes)
                # What later versions call scope_spans has this number and form, too.
                for of_scope in of_resource.instrumentation_library_spans:
                    self.spans += [span_of(span, resource) for span in of_scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()

    def ask(self, request):
        with self.lock:
            if request["op"] == "answer":
                self.code = request["code"]
            return {"spans": self.spans, "tries": self.tries} if request["op"] == "spans" else None


def call(request):
    with grpc.insecure_channel(request["target"], [("grpc.enable_retries", 0)]) as channel:
        method = channel.unary_unary(request["path"])
        for _ in range(request.get("calls", 1)):
            try:
                answer = method(b"", metadata=request.get("metadata"), timeout=TIMEOUT_S)
            except grpc.RpcError as error:
                return {"code": error.code().value[0], "metadata": []}
    return {"code": 0, "metadata": json.loads(answer) if answer.startswith(b"[") else []}


def main():
    agent.serve(sys.argv[1], Collector(sys.argv[2]).ask if len(sys.argv) > 2 else call)


if __name__ == "__main__":
    main()
