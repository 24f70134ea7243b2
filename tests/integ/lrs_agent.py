#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that is a load reporting server (LRS), and passes everything else of an xDS
server on to another one, so that a client finds both where its bootstrap says.

usage: lrs_agent.py SOCKET IP:PORT UPSTREAM_IP:PORT

Every stream is asked for reports of all clusters, each second, and ended when its client has no
more to say. Asked for {op}: `reports`, the answer to which is all reports so far, oldest first, each
{cluster: {service, seconds, localities, drops, dropped}} with localities as {"region/zone/sub_zone":
{issued, ok, error, in_progress, metrics}} and metrics as {name: [number, total]}; `nodes`, {id of a
node: its reports}; `every` with `seconds`, how often reports are wanted from now on; `pause` with
`seconds`, how long to rest after each message; `break`, which ends the streams; `streams`, the
features that the first message of each stream named.
"""

import collections
import concurrent.futures
import queue
import sys
import threading
import time

import grpc
from envoy.service.load_stats.v3 import lrs_pb2
from google.protobuf import duration_pb2

import agent

LRS_METHOD = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats"
FIELDS = ("cpu_utilization", "mem_utilization", "application_utilization")


def settings(seconds):
    return lrs_pb2.LoadStatsResponse(
        send_all_clusters=True,
        load_reporting_interval=duration_pb2.Duration(seconds=seconds)).SerializeToString()


def metrics_of(locality):
    told = {m.metric_name: m for m in locality.load_metric_stats}
    told.update((name, getattr(locality, name)) for name in FIELDS if locality.HasField(name))
    return {name: [m.num_requests_finished_with_metric, m.total_metric_value]
            for name, m in told.items()}


def locality_of(stats):
    place = stats.locality
    return f"{place.region}/{place.zone}/{place.sub_zone}", {
        "issued": stats.total_issued_requests, "ok": stats.total_successful_requests,
        "error": stats.total_error_requests, "in_progress": stats.total_requests_in_progress,
        "metrics": metrics_of(stats)}


def cluster_of(stats):
    return {"service": stats.cluster_service_name,
            "seconds": stats.load_report_interval.ToTimedelta().total_seconds(),
            "localities": dict(map(locality_of, stats.upstream_locality_stats)),
            "drops": {d.category: d.dropped_count for d in stats.dropped_requests},
            "dropped": stats.total_dropped_requests}


class Server:
    def __init__(self, upstream):
        self.channel = grpc.insecure_channel(upstream)
        self.lock = threading.Lock()
        self.live = {}  # by context: what its stream is to be sent, None ends it
        self.seconds = 1
        self.pause_s = 0
        self.features = []  # of each stream
        self.reports = []
        self.nodes = collections.defaultdict(list)

    def read(self, requests, to_send):
        node = None
        try:
            for number, request in enumerate(requests):
                message = lrs_pb2.LoadStatsRequest.FromString(request)
                with self.lock:
                    if number == 0:
                        node = message.node.id
                        self.features.append(list(message.node.client_features))
                    else:
                        self.reports.append({s.cluster_name: cluster_of(s)
                                             for s in message.cluster_stats})
                        self.nodes[node].append(self.reports[-1])
                time.sleep(self.pause_s)
        except grpc.RpcError:
            pass
        to_send.put(None)

    def take_reports(self, requests, context):
        to_send = queue.Queue()
        context.add_callback(lambda: to_send.put(None))
        with self.lock:
            self.live[context] = to_send
            to_send.put(settings(self.seconds))
        threading.Thread(target=self.read, args=(requests, to_send), daemon=True).start()
        yield from iter(to_send.get, None)
        with self.lock:
            del self.live[context]

    def pass_on(self, method, requests, context):
        call = self.channel.stream_stream(method)(requests)
        context.add_callback(call.cancel)
        try:
            yield from call
        except grpc.RpcError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, error.details() or "the server is gone")

    def ask(self, request):
        with self.lock:
            if request["op"] == "reports":
                return self.reports
            if request["op"] == "streams":
                return self.features
            if request["op"] == "nodes":
                return self.nodes
            if request["op"] == "pause":
                self.pause_s = request["seconds"]
                return self.pause_s
            if request["op"] == "every":
                self.seconds = request["seconds"]
                for to_send in self.live.values():
                    to_send.put(settings(self.seconds))
                return len(self.live)
            for context in list(self.live):
                context.cancel()
            return len(self.live)


class Handler(grpc.GenericRpcHandler):
    def __init__(self, server):
        self.server = server

    def service(self, handler_call_details):
        method = handler_call_details.method
        if method == LRS_METHOD:
            return grpc.stream_stream_rpc_method_handler(self.server.take_reports)
        return grpc.stream_stream_rpc_method_handler(
            lambda requests, context: self.server.pass_on(method, requests, context))


def main():
    path, address, upstream = sys.argv[1:]
    server = Server(upstream)
    grpc_server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), handlers=[Handler(server)])
    if grpc_server.add_insecure_port(address) == 0:
        sys.exit(f"cannot listen on {address}")
    grpc_server.start()
    agent.serve(path, server.ask)


if __name__ == "__main__":
    main()
