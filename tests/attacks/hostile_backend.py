#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Backends that mean harm, or are broken: a port for each, a function for each.

usage: hostile_backend.py ADDRESS

A function gets each connection as a Peer, in a thread of its own, once the balancer's preface is there. The route
/hostile/NAME leads to the function of that name."""

import random
import socket
import sys
import threading
import time

import raw_h2 as h2

FIRST_PORT = 8100
BIG_VALUE = "v" * 3900  # enters a table of 4 KiB once
BEHAVIOURS = []


class Gone(Exception):
    pass


class Peer:
    def __init__(self, sock):
        self.socket = sock
        self.buffer = bytearray()

    def send(self, *frames):
        self.socket.sendall(b"".join(frames))

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise Gone
        self.buffer += data

    def preface(self, *settings):
        while len(self.buffer) < len(h2.PREFACE):
            self.more()
        del self.buffer[:len(h2.PREFACE)]
        self.send(h2.settings(*settings))

    def frames(self):
        """All frames as they come; SETTINGS and PING are answered."""
        while True:
            for kind, flags, stream, payload in h2.frames_of(self.buffer):
                if kind in (h2.SETTINGS, h2.PING) and not flags & h2.ACK:
                    self.send(h2.frame(kind, h2.ACK, 0, payload if kind == h2.PING else b""))
                yield kind, flags, stream, payload
            self.more()

    def requests(self):
        """Streams whose headers have come; those bodies that come are allowed for."""
        for kind, _, stream, payload in self.frames():
            if kind == h2.HEADERS:
                yield stream
            elif kind == h2.DATA and payload:
                self.send(h2.window(0, len(payload)), h2.window(stream, len(payload)))


def behaviour(function):
    BEHAVIOURS.append(function)
    return function


def status(code="200", *more):
    return (h2.indexed(8) if code == "200" else h2.literal(":status", code)) + h2.fields(*more)


@behaviour
def silent(peer):
    """Takes everything and never answers."""
    peer.preface()
    for _ in peer.requests():
        pass


@behaviour
def later(peer):
    """An honest one: answers after 20 to 40 s, when there is news."""
    peer.preface()
    peer.socket.settimeout(0.2)
    due = []
    while True:
        try:
            for stream in peer.requests():
                due.append((time.monotonic() + random.uniform(20, 40), stream))
        except TimeoutError:
            now = time.monotonic()
            peer.send(*(h2.headers(stream, status()) for at, stream in due if at <= now))
            due = [(at, stream) for at, stream in due if at > now]


@behaviour
def deaf(peer):
    """Lets thousands of requests begin, and reads none of them."""
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.preface((h2.MAX_STREAMS, 100_000), (h2.INITIAL_WINDOW, 1 << 20))
    time.sleep(40)  # longer than any attack


@behaviour
def fat(peer):
    """59 KiB of header fields in each answer, in 300 bytes each but for the first."""
    peer.preface((h2.MAX_STREAMS, 100_000))
    table = h2.literal("x-fat", BIG_VALUE, 0x40)
    for number, stream in enumerate(peer.requests()):
        block = status() + (table if number == 0 else h2.indexed(62)) + h2.indexed(62) * 14
        peer.send(h2.headers(stream, block, end=True))


@behaviour
def restarter(peer):
    """Hangs up after ten answers, and nobody listens for a second then."""
    peer.preface()
    for number, stream in enumerate(peer.requests()):
        peer.send(h2.headers(stream, status()))
        if number == 9:
            return


@behaviour
def hangs_up(_):
    """At once, each time."""


@behaviour
def garbage(peer):
    peer.send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n" * 10)
    peer.more()


@behaviour
def informational(peer):
    """103 without end."""
    peer.preface()
    for stream in peer.requests():
        peer.send(h2.headers(stream, status("103", ("link", "</a>")), end=False) * 500)


@behaviour
def pusher(peer):
    peer.preface()
    for stream in peer.requests():
        peer.send(h2.frame(h2.PUSH, h2.END_HEADERS, stream, b"\0\0\0\2" + h2.request("/pushed")))


@behaviour
def large_trailers(peer):
    """A whole answer, and 70 KiB of trailers behind it."""
    peer.preface((h2.MAX_STREAMS, 1000))
    for stream in peer.requests():
        block = b"".join(h2.literal(f"x-{n}", "v" * 1000) for n in range(70))
        peer.send(h2.headers(stream, status(), end=False), h2.data(stream, b"#" * 100),
                  h2.headers(stream, block[:16000], end_headers=False),
                  *(h2.continuation(stream, block[at:at + 16000], at + 16000 >= len(block))
                    for at in range(16000, len(block), 16000)))


@behaviour
def resetter(peer):
    """RST for each request, GOAWAY after twenty (CVE-2023-35945)."""
    peer.preface()
    for number, stream in enumerate(peer.requests()):
        peer.send(h2.headers(stream, status(), end=False) if number % 2 else b"", h2.rst(stream))
        if number == 20:
            peer.send(h2.goaway(stream), h2.rst(stream), h2.goaway(0))


@behaviour
def no_streams(peer):
    """None are allowed, ever."""
    peer.preface((h2.MAX_STREAMS, 0))
    for _ in peer.requests():
        pass


@behaviour
def unread_answers(peer):
    """PING in number, whose answers it does not read."""
    peer.preface()
    next(peer.requests())
    while True:
        peer.send(h2.ping() * 100)


@behaviour
def endless_header(peer):
    peer.preface()
    for stream in peer.requests():
        peer.send(h2.headers(stream, status(), end=False, end_headers=False))
        while True:
            peer.send(h2.continuation(stream, h2.literal("x", "y")) * 100)


@behaviour
def beyond_the_window(peer):
    """More than the balancer allows."""
    peer.preface()
    for stream in peer.requests():
        peer.send(h2.headers(stream, status(), end=False), h2.data(stream, bytes(16384)) * 100)


@behaviour
def endless_body(peer):
    """As much as the windows allow."""
    peer.preface()
    left, first, streams = h2.DEFAULT_WINDOW, h2.DEFAULT_WINDOW, {}
    for kind, flags, stream, payload in peer.frames():
        if kind == h2.HEADERS:
            peer.send(h2.headers(stream, status(), end=False))
            streams[stream] = first
        elif kind == h2.SETTINGS and not flags & h2.ACK:
            first = h2.settings_of(payload).get(h2.INITIAL_WINDOW, first)
        elif kind == h2.RST:
            streams.pop(stream, None)
        elif kind == h2.WINDOW and stream == 0:
            left += int.from_bytes(payload, "big")
        elif kind == h2.WINDOW and stream in streams:
            streams[stream] += int.from_bytes(payload, "big")
        for number, window in list(streams.items()):
            size = min(window, left, 16384)
            if size:
                peer.send(h2.data(number, bytes(size)))
                streams[number], left = window - size, left - size


@behaviour
def dribbles(peer):
    """A byte in 100 ms, to each."""
    peer.preface()
    peer.socket.settimeout(0.1)
    streams = []
    while True:
        try:
            for stream in peer.requests():
                peer.send(h2.headers(stream, status(), end=False))
                streams.append(stream)
        except TimeoutError:
            peer.send(*(h2.data(stream, b"#") for stream in streams[-30:]))


@behaviour
def malformed(peer):
    """Answers that are none, of several kinds."""
    kinds = (h2.literal(":status", "20"), h2.literal(":status", "abc"), status("200", ("connection", "close")),
             status("200", ("Upper", "case")), status("200", ("x", "a\r\nb: c")), h2.fields(("x", "y")),
             status("200", ("content-length", "5")), status("101"))
    peer.preface()
    for number, stream in enumerate(peer.requests()):
        peer.send(h2.headers(stream, kinds[number % len(kinds)]))


PORTS = {f.__name__: FIRST_PORT + n for n, f in enumerate(BEHAVIOURS)}


def serve_one(sock, function):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        function(Peer(sock))
    except (Gone, OSError):
        pass
    finally:
        sock.close()


def serve(address, port, function):
    listener = socket.create_server((address, port), backlog=1024)
    while True:
        sock, _ = listener.accept()
        if function is restarter:
            listener.close()
            serve_one(sock, function)
            time.sleep(1)
            listener = socket.create_server((address, port))
            continue
        threading.Thread(target=serve_one, args=(sock, function), daemon=True).start()


def main(address):
    for function in BEHAVIOURS[1:]:
        threading.Thread(target=serve, args=(address, PORTS[function.__name__], function), daemon=True).start()
    serve(address, PORTS[BEHAVIOURS[0].__name__], BEHAVIOURS[0])


if __name__ == "__main__":
    main(sys.argv[1])
