#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that is the victim: a small steady load of honest requests beside each attack.

usage: victim_agent.py SOCKET [CA]

Three connections that stay, and one request in four on a connection of its own, fifty a second together: small GETs,
POSTs, which no proxy may repeat, and now and then a page of 100 kB. Each answer must be there within TIMEOUT_S and
whole. As any client it leaves a connection that says GOAWAY, and asks once more what came too late for that (RFC 9113
6.8). With the file of a CA all of it is over TLS. Asked for anything, it tells `ended`, what has since it was asked
last: [began, seconds, error or None], and the `ports` of the connections that stay."""

import itertools
import socket
import ssl
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions

import agent
import raw_h2

VIP, PORT = "10.81.0.10", 8080
TIMEOUT_S = 10
CONNECT_TIMEOUT_S = 2.5
EVERY_S = 0.08  # each of four threads
KINDS = [("GET", "/mark", 600), ("POST", "/mark", 600), ("GET", "/mark", 600), ("GET", "/page", 100_000)]
BODY = b"#" * 200
ENDED = []
PORTS = {}  # of each thread
LOCK = threading.Lock()
TRUST = ssl.create_default_context(cafile=sys.argv[2]) if len(sys.argv) > 2 else None
NAME = "front.example"
if TRUST:
    TRUST.set_alpn_protocols(["h2"])


class Failed(Exception):
    pass


class TooLate(Exception):
    """The connection was leaving: the request was not processed."""


class Session:
    def __init__(self):
        self.socket = socket.create_connection((VIP, PORT), CONNECT_TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if TRUST:
            self.socket.settimeout(TIMEOUT_S)
            self.socket = TRUST.wrap_socket(self.socket, server_hostname=NAME)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(1 << 24)
        self.socket.sendall(self.h2.data_to_send())
        self.buffer, self.leaves = bytearray(), False

    def ask(self, method, path, size):
        stream, end = self.h2.get_next_available_stream_id(), time.monotonic() + TIMEOUT_S
        self.h2.send_headers(stream, [(":method", method), (":scheme", "http"), (":path", path),
                                      (":authority", "victim.test")], end_stream=method == "GET")
        if method == "POST":
            self.h2.send_data(stream, BODY, end_stream=True)
        self.socket.sendall(self.h2.data_to_send())
        got = 0
        while True:
            self.socket.settimeout(max(0.001, end - time.monotonic()))
            data = self.socket.recv(1 << 16)
            if not data:
                raise Failed("connection lost")
            for event in self.h2.receive_data(self.without_goaway(data, stream)):
                if isinstance(event, h2.events.ResponseReceived):
                    status = dict(event.headers)[":status"]
                    if status != "200":
                        raise Failed(f"status {status}")
                elif isinstance(event, h2.events.DataReceived):
                    got += len(event.data)
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamReset):
                    raise Failed(f"reset {int(event.error_code)}")
                elif isinstance(event, h2.events.StreamEnded):
                    if got != size:
                        raise Failed(f"{got} bytes of {size}")
                    self.socket.sendall(self.h2.data_to_send())
                    return
            self.socket.sendall(self.h2.data_to_send())

    def without_goaway(self, data, stream):
        """The library would read nothing behind it."""
        self.buffer += data
        others = bytearray()
        for kind, flags, number, payload in raw_h2.frames_of(self.buffer):
            if kind != raw_h2.GOAWAY:
                others += raw_h2.frame(kind, flags, number, payload)
                continue
            self.leaves = True
            last, code = (int.from_bytes(payload[at:at + 4], "big") for at in (0, 4))
            if code:
                raise Failed(f"goaway {code}")
            if last < stream:
                raise TooLate
        return bytes(others)

    def close(self):
        self.socket.close()


class Asker:
    def __init__(self, number):
        self.number, self.stays, self.session = number, number != 0, None

    def ask(self, kind):
        while True:
            self.session = self.session or Session()
            PORTS[self.number] = self.session.socket.getsockname()[1]
            try:
                return self.session.ask(*kind)
            except TooLate:
                self.leave()

    def leave(self):
        if self.session:
            self.session.close()
        self.session = None

    def live(self):
        due = time.monotonic() + self.number * EVERY_S / 4
        for kind in itertools.cycle(KINDS):
            due = max(due + EVERY_S, time.monotonic() - EVERY_S)
            time.sleep(max(0, due - time.monotonic()))
            began, error = time.monotonic(), None
            try:
                self.ask(kind)
            except TimeoutError:
                error = "timeout"
            except (OSError, Failed, h2.exceptions.ProtocolError) as e:
                error = f"{type(e).__name__}: {e}"
            with LOCK:
                ENDED.append((began, time.monotonic() - began, error and f"{kind[0]} {kind[1]}: {error}"))
            if error or not self.stays or self.session.leaves:
                self.leave()


def told(_asked):
    with LOCK:
        ended, ENDED[:] = list(ENDED), []
    return {"ended": ended, "ports": [port for number, port in PORTS.items() if number]}


if __name__ == "__main__":
    for n in range(4):
        threading.Thread(target=Asker(n).live, daemon=True).start()
    agent.serve(sys.argv[1], told)
