# SPDX-License-Identifier: Apache-2.0
"""fleet_push.py [--streams N] [--layers 0 1 2] [--changes N] [--endpoints N]: how long a change of endpoints
takes from the management server to all clients, directly and through layers of `shunt-xds proxy`, and the CPU
time that it takes whoever serves the clients. Prints a JSON object a line. Loopback only; takes a minute.

The time is from the file's change to each stream's message. It has the 50 ms for which a folder must be quiet,
and what this program, in Python and on the same cores, takes to read.
"""

import argparse
import collections
import json
import pathlib
import queue
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integ"))
import grpc
from envoy.service.discovery.v3 import discovery_pb2

import resources
from resources import ENDPOINTS
from xds_server import SERVICE, Proxy, Serve

PATIENCE_S = 60


class Clients:
    """ADS streams, each on a connection of its own, that note when a message comes and accept it unread."""

    def __init__(self, address, n):
        self.times = [collections.deque() for _ in range(n)]  # of messages that were not taken
        self.lock = threading.Condition()
        self.calls = []
        for number in range(n):
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
            channel = grpc.insecure_channel(address, options)
            call = channel.stream_stream(SERVICE + "StreamAggregatedResources")
            thread = threading.Thread(target=self._read, args=(call, number), daemon=True)
            thread.start()

    def _read(self, call, number):
        request = discovery_pb2.DiscoveryRequest(type_url=ENDPOINTS, resource_names=["fleet"])
        request.node.id = f"client{number}"
        answers = queue.Queue()
        answers.put(request.SerializeToString())
        stream = call(iter(answers.get, None))
        self.calls.append(stream)
        try:
            for message in stream:
                now = time.monotonic()
                response = discovery_pb2.DiscoveryResponse.FromString(message)
                request.version_info, request.response_nonce = response.version_info, response.nonce
                answers.put(request.SerializeToString())
                with self.lock:
                    self.times[number].append(now)
                    self.lock.notify()
        except grpc.RpcError:
            answers.put(None)

    def take(self):
        """When the next message of each stream came."""
        with self.lock:
            assert self.lock.wait_for(lambda: all(self.times), PATIENCE_S), f"{sum(map(bool, self.times))} streams"
            return [times.popleft() for times in self.times]

    def close(self):
        for call in self.calls:
            call.cancel()


def assignment(n, port):
    """Of n endpoints; another port is another version."""
    hosts = [{"endpoint": {"address": {"socket_address": {
        "address": f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", "port_value": port}}}} for i in range(n)]
    return {"@type": ENDPOINTS, "cluster_name": "fleet", "endpoints": [
        {"locality": {"zone": "a"}, "load_balancing_weight": 1, "lb_endpoints": hosts}]}


def cpu_s(server):
    """Of all its threads, with more digits than /proc/PID/stat has."""
    tasks = pathlib.Path(f"/proc/{server.process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def measure(args, folder, layers):
    servers = [Serve(folder, assignment(args.endpoints, 1000))]
    for layer in range(layers):
        path = folder / f"proxy{layer}"
        path.mkdir()
        servers.append(Proxy(path, servers[-1]))
    clients = Clients(servers[-1].address, args.streams)
    clients.take()
    took, before = [], cpu_s(servers[-1])
    for change in range(args.changes):
        start = time.monotonic()
        servers[0].folder.put(assignment(args.endpoints, 1001 + change))
        took.append(sorted(1000 * (at - start) for at in clients.take()))
    cpu = (cpu_s(servers[-1]) - before) / args.changes / args.streams
    clients.close()
    for server in reversed(servers):
        server.stop()
    print(json.dumps({"layers": layers, "streams": args.streams, "endpoints": args.endpoints,
                      "first_ms": round(statistics.median(t[0] for t in took), 1),
                      "median_ms": round(statistics.median(t[len(t) // 2] for t in took), 1),
                      "last_ms": round(statistics.median(t[-1] for t in took), 1),
                      "cpu_us_per_stream": round(1e6 * cpu, 1)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--layers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--endpoints", type=int, default=1000)
    args = parser.parse_args()
    for layers in args.layers:
        with tempfile.TemporaryDirectory() as folder:
            measure(args, pathlib.Path(folder), layers)


if __name__ == "__main__":
    main()
