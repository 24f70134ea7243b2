#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Backends that mean harm, or are broken: a port for each, a function for each.

usage: hostile_backend.py ADDRESS

A function gets each connection as a Peer, in a thread of its own, once the balancer's preface is there. The route
/hostile/NAME leads to the function of that name."""

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
def deaf(peer):
    """Lets thousands of requests begin, and reads none of them."""
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.preface((h2.MAX_STREAMS, 100_000), (h2.INITIAL_WINDOW, 1 << 20))
    time.sleep(3600)


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
