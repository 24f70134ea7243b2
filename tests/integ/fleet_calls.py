#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gRPC calls on many channels, each with a connection of its own, until a file exists.

usage: fleet_calls.py TARGET STOP_FILE CHANNELS CALLS_PER_S STREAMS STREAM_S

On each channel calls follow each other at their rate; beside them so many streams of STREAM_S, one after the other.
There is no retry policy: the client tries again, as it comes, only what no server has seen. Prints one line of JSON:
how many there were, which failed, and how long one took at most.
"""

import json
import os
import sys
import threading
import time

import grpc

import grpc_calls

TIMEOUT_S = 20
MESSAGE_S = 0.25


class Load:
    def __init__(self, target, stop_file, channels, per_s, streams, stream_s):
        self.stop_file, self.pause_s, self.stream_s = stop_file, int(channels) / float(per_s), float(stream_s)
        own = [("grpc.use_local_subchannel_pool", 1)]
        self.channels = [grpc.insecure_channel(target, options=own) for _ in range(int(channels))]
        self.lock = threading.Lock()
        self.report = {"calls": 0, "streams": 0, "failed": [], "longest_s": 0.0}
        self.threads = [threading.Thread(target=self.call, args=(c,)) for c in self.channels]
        self.threads += [threading.Thread(target=self.stream, args=(self.channels[n % len(self.channels)],))
                         for n in range(int(streams))]

    def run(self):
        for thread in self.threads:
            thread.start()
        print("ready", flush=True)
        for thread in self.threads:
            thread.join()
        print(json.dumps(self.report))

    def goes_on(self):
        return not os.path.exists(self.stop_file)

    def note(self, kind, started, error=None):
        with self.lock:
            self.report[kind] += 1
            if kind == "calls":
                self.report["longest_s"] = max(self.report["longest_s"], time.monotonic() - started)
            if error:
                self.report["failed"].append([kind, time.monotonic(), error.code().name, error.details()])

    def call(self, channel):
        unary = channel.unary_unary(grpc_calls.ECHO + "Unary")
        due = time.monotonic()
        while self.goes_on():
            started, error = time.monotonic(), None
            try:
                unary(b"fleet", timeout=TIMEOUT_S)
            except grpc.RpcError as raised:
                error = raised
            self.note("calls", started, error)
            due = max(due + self.pause_s, time.monotonic() - 1)  # what is late is made up for, within bounds
            time.sleep(max(0.0, due - time.monotonic()))

    def stream(self, channel):
        expand = channel.unary_stream(grpc_calls.ECHO + "Expand")
        order = grpc_calls.sized(int(self.stream_s / MESSAGE_S), 100, MESSAGE_S)
        while self.goes_on():
            started, error = time.monotonic(), None
            try:
                for _ in expand(order, timeout=TIMEOUT_S + self.stream_s):
                    pass
            except grpc.RpcError as raised:
                error = raised
            self.note("streams", started, error)


if __name__ == "__main__":
    Load(*sys.argv[1:]).run()
