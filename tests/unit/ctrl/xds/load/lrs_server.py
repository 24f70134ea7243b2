#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A load reporting server for one test: prints its port, then each message it gets, in hex. It wants
all clusters every second, and breaks its first stream after one report."""
import concurrent.futures
import sys
import threading

import grpc

METHOD = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"
SETTINGS = bytes([0x12, 2, 0x08, 1, 0x20, 1])  # load_reporting_interval 1 s, send_all_clusters

streams = []


def serve(requests, context):
    streams.append(context)
    first = len(streams) == 1
    print("hello", next(requests).hex(), flush=True)
    yield SETTINGS
    for message in requests:
        print("report", message.hex(), flush=True)
        if first:
            context.abort(grpc.StatusCode.UNAVAILABLE, "restart")


class Handler(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.stream_stream_rpc_method_handler(serve) if call.method == METHOD else None


def main():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=(Handler(),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    threading.Timer(60, server.stop, (0,)).start()
    sys.stdin.read()  # the test's end
    server.stop(0)


if __name__ == "__main__":
    main()
