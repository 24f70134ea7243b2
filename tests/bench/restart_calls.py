#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""restart_calls.py TARGET STOP_STREAMS STOP_CALLS: gRPC calls on connections that last, each as long as a proxy leaves
it, and streams that are held open meanwhile. Says "ready" once all streams are; at the end what became of all of them,
as JSON. Retries are those that gRPC makes by itself: of calls that surely reached nobody.
"""

import collections
import json
import os
import sys
import threading
import time

import grpc

ECHO = "/shunt.test.Echo/"
CONNECTIONS, STREAMS = 8, 8  # a call at a time on each; a connection for each
TIMEOUT_S = 10
PAUSE_S = 0.002
BEAT_S = 0.05


class Calls:
    """One connection's."""

    def __init__(self, target, stop_file):
        self.done, self.failed, self.longest_s = 0, collections.Counter(), 0.0
        self._channel = connect(target)
        self._stop_file = stop_file
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        call = self._channel.unary_unary(ECHO + "Unary")
        while not os.path.exists(self._stop_file):
            began = time.monotonic()
            try:
                call(b"x", timeout=TIMEOUT_S)
                self.done += 1
            except grpc.RpcError as error:
                self.failed[f"{error.code().name}: {error.details()}"] += 1
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            time.sleep(PAUSE_S)


class Stream:
    """Ping-pong until the file is there."""

    def __init__(self, target, stop_file):
        self.why, self.opened = "", threading.Event()
        self._channel = connect(target)
        self._stop_file = stop_file
        self._answered = threading.Semaphore(1)
        self.thread = threading.Thread(target=self._run)

    def _speak(self):
        while not os.path.exists(self._stop_file) and self._answered.acquire(timeout=TIMEOUT_S):
            yield b"x"
            time.sleep(BEAT_S)

    def _run(self):
        try:
            for _ in self._channel.stream_stream(ECHO + "Chat")(self._speak()):
                self.opened.set()
                self._answered.release()
        except grpc.RpcError as error:
            self.why = f"{error.code().name}: {error.details()}"


def connect(target):
    return grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])


def main():
    target, stop_streams, stop_calls = sys.argv[1:]
    streams = [Stream(target, stop_streams) for _ in range(STREAMS)]
    calls = [Calls(target, stop_calls) for _ in range(CONNECTIONS)]
    for one in streams + calls:
        one.thread.start()
    for stream in streams:
        if not stream.opened.wait(TIMEOUT_S):
            sys.exit(f"no stream: {stream.why}")
    print("ready", flush=True)
    for one in streams + calls:
        one.thread.join()
    failed = sum((c.failed for c in calls), collections.Counter())
    print(json.dumps({"calls": sum(c.done for c in calls) + failed.total(), "failed": failed.total(),
                      "longest_ms": round(max(c.longest_s for c in calls) * 1000),
                      "streams": STREAMS, "cut": sum(bool(s.why) for s in streams),
                      "why": {**failed, **collections.Counter(s.why for s in streams if s.why)}}))


main()
