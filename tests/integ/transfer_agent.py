#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Moves bodies over HTTP/2 on the kernel's TCP and sees whether they arrive as they were sent. Its windows are so large
that they hold nothing back.

usage: transfer_agent.py serve IP PORT [N]
       transfer_agent.py down|up IP PORT LENGTH CONNECTIONS REQUESTS LIMIT_S
       transfer_agent.py ask IP PORT PAUSE_S LIMIT_S AUTHORITY...

`serve` listens on N ports from this one on, by both families if IP is `::`. A GET of /LENGTH is answered with so many
bytes of the pattern, a POST with the SHA-256 of its body. `down` and `up` make REQUESTS, one after the other, on each
of CONNECTIONS at once, and print {"bytes", "seconds", "latencies": [s, …], "failed": [why, …], "altered": n}. `ask`
makes a small request of each AUTHORITY, each so long after the one before, whether that one has its answer or not, all
on one connection, and prints [[when it began, how long it took, its status or what went wrong], …].
"""

import functools
import hashlib
import json
import random
import select
import socket
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

WINDOW = 64 << 20
OUT = 256 << 10  # bytes that wait for the socket
READ = 256 << 10
BLOCK = random.Random(1).randbytes(1_048_573)  # prime, so that no shift of a power of two goes unseen


def pattern(at, length):
    at %= len(BLOCK)
    piece = BLOCK[at:at + length]
    return piece if len(piece) == length else piece + pattern(0, length - len(piece))


@functools.cache
def digest_of(length):
    digest = hashlib.sha256()
    for at in range(0, length, len(BLOCK)):
        digest.update(pattern(at, min(len(BLOCK), length - at)))
    return digest.hexdigest()


class Session:
    """One connection of either side. Subclasses take its events."""

    def __init__(self, sock, is_client):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self.socket = sock
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=is_client, header_encoding="utf-8"))
        self.h2.local_settings = h2.settings.Settings(client=is_client, initial_values={
            h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: WINDOW, h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 100})
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(WINDOW)
        self.out = bytearray()
        self.bodies = {}  # stream: (sent, length) of what goes out

    def turn(self, timeout):
        """Waits for the socket, and does what there is to do. ConnectionError when the peer is gone."""
        self._fill()
        readable, writable, _ = select.select([self.socket], [self.socket] if self.out else [], [], timeout)
        if writable:
            del self.out[:self.socket.send(self.out)]
        if readable:
            data = self.socket.recv(READ)
            if not data:
                raise ConnectionError("closed by the peer")
            for event in self.h2.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self.take(event)
        self._fill()

    def _fill(self):
        for stream in list(self.bodies):
            self._send_body(stream)
        self.out += self.h2.data_to_send()

    def _send_body(self, stream):
        sent, length = self.bodies[stream]
        pending = 0
        while sent < length and len(self.out) + pending < OUT:
            n = min(length - sent, self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if n <= 0:
                break
            self.h2.send_data(stream, pattern(sent, n), end_stream=sent + n == length)
            sent += n
            pending += n
        self.bodies[stream] = (sent, length)
        if sent == length:
            del self.bodies[stream]

    def take(self, event):
        raise NotImplementedError


class Server(Session):
    def __init__(self, sock):
        super().__init__(sock, False)
        self.digests = {}

    def take(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            fields = dict(event.headers)
            if fields[":method"] == "POST":
                self.digests[stream] = hashlib.sha256()
                return
            self.h2.send_headers(stream, [(":status", "200")])
            self.bodies[stream] = (0, int(fields[":path"].strip("/")))
        elif isinstance(event, h2.events.DataReceived):
            self.digests[stream].update(event.data)
        elif isinstance(event, h2.events.StreamEnded) and stream in self.digests:
            self.h2.send_headers(stream, [(":status", "200")])
            self.h2.send_data(stream, self.digests.pop(stream).hexdigest().encode(), end_stream=True)
        elif isinstance(event, h2.events.StreamReset):
            self.digests.pop(stream, None)
            self.bodies.pop(stream, None)

    def run(self):
        try:
            while True:
                self.turn(None)
        except (OSError, h2.exceptions.ProtocolError) as error:
            print(f"{self.socket}: {error}", flush=True)
            self.socket.close()


class Client(Session):
    def __init__(self, sock, authority):
        super().__init__(sock, True)
        self.authority = authority
        self.answer = self.status = self.ended = None

    def ask(self, method, length, until_s):
        """Makes a request; what went wrong with it, None: nothing, or "altered"."""
        stream = self.h2.get_next_available_stream_id()
        self.answer, self.status, self.ended = bytearray(), None, None
        digest = hashlib.sha256()
        self.h2.send_headers(stream, [(":method", method), (":scheme", "http"), (":path", f"/{length}"),
                                      (":authority", self.authority)], end_stream=method == "GET")
        if method == "POST":
            self.bodies[stream] = (0, length)
        received = 0
        while self.ended is None:
            left = until_s - time.monotonic()
            if left <= 0:
                return f"no end in time, {received} bytes received"
            self.turn(left)
            if method == "GET":
                digest.update(self.answer)
                received += len(self.answer)
                self.answer.clear()
        if self.ended or self.status != "200":
            return self.ended or f"status {self.status}"
        expected = digest_of(length)
        return None if (digest.hexdigest() if method == "GET" else self.answer.decode()) == expected else "altered"

    def take(self, event):
        if isinstance(event, h2.events.ResponseReceived):
            self.status = dict(event.headers)[":status"]
        elif isinstance(event, h2.events.DataReceived):
            self.answer += event.data
        elif isinstance(event, h2.events.StreamEnded):
            self.ended = ""
        elif isinstance(event, h2.events.StreamReset):
            self.ended = f"reset {event.error_code}"
        elif isinstance(event, h2.events.ConnectionTerminated) and self.ended is None:
            self.ended = f"GOAWAY {event.error_code}"


class Asker(Session):
    """Small requests side by side. answers: [began, took, status], times in seconds since the connection was there."""

    def __init__(self, sock):
        super().__init__(sock, True)
        self.began_s = time.monotonic()
        self.answers = []
        self.asked = {}  # stream: its answer

    def now(self):
        return time.monotonic() - self.began_s

    def ask(self, authority):
        stream = self.h2.get_next_available_stream_id()
        self.asked[stream] = answer = [self.now(), None, "no answer"]
        self.answers.append(answer)
        self.h2.send_headers(stream, [(":method", "GET"), (":scheme", "http"), (":path", "/1"),
                                      (":authority", authority)], end_stream=True)

    def turn_until(self, end_s):
        while (left := end_s - self.now()) > 0:
            self.turn(left)

    def finish(self, limit_s):
        while self.asked and (left := limit_s - self.now()) > 0:
            self.turn(left)

    def take(self, event):
        answer = self.asked.get(getattr(event, "stream_id", None))
        if isinstance(event, h2.events.ResponseReceived):
            answer[2] = dict(event.headers)[":status"]
        elif isinstance(event, h2.events.StreamReset) and answer:
            answer[2] = f"reset {event.error_code}"
        if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)) and answer:
            answer[1] = self.now() - answer[0]
            del self.asked[event.stream_id]


def ask(ip, port, pause_s, limit_s, *authorities):
    asker = Asker(socket.create_connection((ip, int(port)), float(limit_s)))
    try:
        for number, authority in enumerate(authorities):
            asker.turn_until(number * float(pause_s))
            asker.ask(authority)
        asker.finish(float(limit_s))
    except OSError as error:
        for answer in asker.asked.values():
            answer[2] = str(error)
    print(json.dumps(asker.answers))


def transfer(method, address, length, n_requests, until_s, ret):
    """All requests of one connection; ret: [(seconds, what went wrong)]"""
    started = time.monotonic()
    try:
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        client = Client(socket.create_connection(address, until_s - started), f"{host}:{address[1]}")
        for _ in range(n_requests):
            started = time.monotonic()
            wrong = client.ask(method, length, until_s)
            ret.append((time.monotonic() - started, wrong))
            if wrong not in (None, "altered"):
                break
        client.socket.close()
    except (OSError, h2.exceptions.ProtocolError) as error:
        ret.append((time.monotonic() - started, f"{type(error).__name__}: {error}"))


def run(way, ip, port, length, n_connections, n_requests, limit_s):
    digest_of(length)
    results = [[] for _ in range(n_connections)]
    started = time.monotonic()
    threads = [threading.Thread(target=transfer, args=("GET" if way == "down" else "POST", (ip, port), length,
                                                       n_requests, started + limit_s, ret)) for ret in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - started
    done = [result for ret in results for result in ret]
    good = [s for s, wrong in done if wrong is None]
    print(json.dumps({
        "bytes": len(good) * length, "seconds": seconds, "latencies": good,
        "failed": [wrong for _, wrong in done if wrong not in (None, "altered")],
        "altered": sum(wrong == "altered" for _, wrong in done)}))


def serve_port(ip, port):
    with socket.create_server((ip, port), family=socket.AF_INET6 if ":" in ip else socket.AF_INET,
                              backlog=128, dualstack_ipv6=ip == "::") as listener:
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=Server(sock).run, daemon=True).start()


def serve(ip, port, n=1):
    threads = [threading.Thread(target=serve_port, args=(ip, port + i)) for i in range(n)]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], *map(int, sys.argv[3:]))
    elif sys.argv[1] == "ask":
        ask(*sys.argv[2:])
    else:
        run(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(int, sys.argv[4:]))
