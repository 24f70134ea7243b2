#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the attack of one row, in the attackers' namespace, and prints what became of it as JSON.

usage: attacker.py TOPIC ROW SECONDS ARGUMENTS

The row's function gets an Attack: it has the time, opens connections (Conn) and counts. An attack ends by itself, or
when the time is up, or when the balancer has cut its last connection."""

import collections
import contextlib
import importlib
import itertools
import json
import random
import select
import socket
import sys
import time
import traceback

import hpack

import raw_h2 as h2

VIP, PORT = "10.81.0.10", 8080
SOURCES = "10.66.{}.{}"  # addresses that the namespace has, a net for each row; those of raw_tcp are others
CONNECT_TIMEOUT_S = 5
FOR_EVER_S = 3600
SLOW_S = 10  # more, for an attack that has not done its least


class Over(Exception):
    """The time is up."""


class Cut(Exception):
    """The balancer has ended this connection."""


class Conn:
    """A connection to the balancer that sends whatever it is told. Without `reads` it never takes an answer: then
    it has a small buffer, so that the balancer notices."""

    def __init__(self, a, settings=(), preface=True, reads=True, source=None):
        self.a, self.reads = a, reads
        self.socket = socket.socket()
        if not reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.bind((source or a.source(), 0))
        self.socket.settimeout(CONNECT_TIMEOUT_S)
        self.unread = bytearray()
        self.goaway = None  # its code
        self.resets = collections.Counter()  # by code
        self.responses = self.acks = 0  # acks: of SETTINGS
        self.window = h2.DEFAULT_WINDOW  # of the connection, as granted
        self.is_amid, self.owed = False, b""  # a frame is sent in part; what is to be sent behind it
        self.answers = {}  # by stream: fields and body, if it keeps_answers
        self.keeps_answers = False
        self.decoder = hpack.Decoder()
        self.is_open = True
        self.socket.connect((VIP, PORT))
        self.socket.setblocking(False)
        self.born = time.monotonic()
        a.opened(self)
        if preface:
            self.send(h2.PREFACE + h2.settings(*settings))

    def fileno(self):
        return self.socket.fileno()

    def send(self, data):
        """All of it; Cut or Over when that can't be."""
        self.pump()
        self.is_amid = True
        view = memoryview(data)
        while view:
            self.pump()
            try:
                view = view[self.socket.send(view[:1 << 16]):]
            except BlockingIOError:
                self.wait(writable=True)
            except OSError:
                self.cut()
        self.is_amid = False
        owed, self.owed = self.owed, b""
        if owed:
            self.send(owed)

    def try_send(self, data):
        """What the socket takes at once; its length."""
        self.pump()
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return self.cut()

    def wait_acks(self, n):
        while self.acks < n:
            self.wait()
            self.pump()

    def wait_resets(self, n):
        while sum(self.resets.values()) < n:
            self.wait()
            self.pump()

    def wait(self, writable=False, seconds=FOR_EVER_S):
        left = self.a.left()
        select.select([self] if self.reads else [], [self] if writable else [], [], min(left, seconds))

    def pump(self):
        """Takes what has come."""
        while self.reads:
            try:
                data = self.socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.cut()
            self.unread += data
            for kind, flags, stream, payload in h2.frames_of(self.unread):
                self.note(kind, flags, stream, payload)

    def note(self, kind, flags, stream, payload):
        if kind == h2.GOAWAY and self.goaway is None:
            self.goaway = int.from_bytes(payload[4:8], "big")
            self.a.ended(self)
        elif kind == h2.RST:
            self.resets[int.from_bytes(payload, "big")] += 1
        elif kind == h2.HEADERS:
            self.responses += 1
            if self.keeps_answers:
                self.answer(stream, self.fields(flags, stream, payload))
        elif kind == h2.DATA and self.keeps_answers:
            self.answer(stream, payload.decode("latin-1"))
        elif kind == h2.SETTINGS and flags & h2.ACK:
            self.acks += 1
        elif kind == h2.WINDOW and stream == 0:
            self.window += int.from_bytes(payload, "big")
        elif kind == h2.SETTINGS and self.is_amid:
            self.owed += h2.frame(h2.SETTINGS, h2.ACK)
        elif kind == h2.SETTINGS:
            with contextlib.suppress(OSError):  # reading tells
                self.socket.send(h2.frame(h2.SETTINGS, h2.ACK))

    def fields(self, flags, stream, payload):
        try:
            return "".join(f"{name}: {value}\n" for name, value in self.decoder.decode(payload))
        except hpack.HPACKError as e:
            raise ValueError(f"stream {stream}, flags {flags:#x}: {payload.hex()}") from e

    def answer(self, stream, text):
        self.answers[stream] = self.answers.get(stream, "") + text

    def cut(self):
        self.a.ended(self)
        self.close()
        raise Cut

    def close(self):
        self.is_open = False
        self.socket.close()
        self.a.open.discard(self)


class Attack:
    def __init__(self, seconds, arguments):
        self.began = time.monotonic()
        self.end = self.began + seconds
        self.seconds = seconds
        self.least = arguments.get("least", 0)  # units, on a machine so slow that the time is not enough for them
        self.long = arguments.get("long", False)
        self.arguments = arguments
        self.units = 0  # requests, frames, segments: what the attack is made of
        self.connections = self.most = 0
        self.cuts = []  # seconds from a connection's beginning to GOAWAY or its end
        self.goaways = collections.Counter()
        self.told = {}  # more for the row's check
        self.open = set()
        self._ended = set()
        self._sources = itertools.count(1)
        self.net = arguments["net"]
        self.shift = int(time.time()) % 300  # of ports by hand: not those of the attack before this one
        self.random = random.Random(arguments.get("seed", 1))

    # -- time

    def left(self):
        left = self.end - time.monotonic()
        if self.units < self.least:
            left += SLOW_S
        if left <= 0:
            raise Over
        return left

    def seconds_gone(self):
        return time.monotonic() - self.began

    def going(self):
        return time.monotonic() < self.end + SLOW_S * (self.units < self.least)

    def sleep(self, seconds):
        time.sleep(min(self.left(), seconds))

    # -- connections

    def source(self, number=None):
        """One of few addresses: an attacker has some, and no end of ports. Or that of this number."""
        return SOURCES.format(self.net, 1 + next(self._sources) % 4 if number is None else number)

    def opened(self, conn):
        self.open.add(conn)
        self.connections += 1
        self.most = max(self.most, len(self.open))

    def ended(self, conn):
        if conn not in self._ended:
            self._ended.add(conn)
            self.cuts.append(time.monotonic() - conn.born)
            self.goaways[conn.goaway] += 1

    def connect(self, n=None, **how):
        """A Conn, or a list of n."""
        if n is None:
            return Conn(self, **how)
        return [Conn(self, **how) for _ in range(n)]

    def crowd(self, n, first=b""):
        """n plain sockets at once, each of which has said so much; with what becomes of them nobody is concerned."""
        waiting = select.poll()
        crowd = {}
        for _ in range(n):
            sock = socket.socket()
            sock.bind((self.source(), 0))
            sock.setblocking(False)
            sock.connect_ex((VIP, PORT))
            crowd[sock.fileno()] = sock
            waiting.register(sock, select.POLLOUT)
        self.connections += n
        self.most += n
        self.units += n
        ready = 0
        while ready < n and self.going():
            for number, _ in waiting.poll(200):
                waiting.unregister(number)
                ready += 1
                with contextlib.suppress(OSError):
                    crowd[number].send(first)
        return list(crowd.values())

    # -- patterns

    def send_each(self, conns, payload, units):
        """The payload to each, or payload(its number)."""
        for number, conn in enumerate(conns):
            try:
                conn.send(payload(number) if callable(payload) else payload)
                self.units += units
            except Cut:
                pass

    def hold(self, each=None, every_s=0.2):
        """Keeps what is open until the end, or until nothing is; each(conn) now and then."""
        while self.open:
            self.left()
            for conn in list(self.open):
                try:
                    conn.pump()
                    if each:
                        each(conn)
                    if not conn.reads:
                        self._look(conn)
                except Cut:
                    pass
            self.sleep(every_s)

    @staticmethod
    def _look(conn):
        """Of one that does not read: whether it is still there."""
        poll = select.poll()
        poll.register(conn, select.POLLRDHUP)
        if poll.poll(0):
            conn.cut()

    def flood(self, payload, units, n=1, again=False, **how):
        """Sends payload (bytes, or what payload(number of the turn) gives) on n connections by turns, for ever.
        again: opens a new one for each that is cut."""
        conns = self.connect(n, **how)
        for turn in itertools.count():
            if not conns:
                return
            for conn in list(conns):
                self.left()
                try:
                    conn.send(payload(turn) if callable(payload) else payload)
                    self.units += units
                except Cut:
                    conns.remove(conn)
                    if again:
                        conns += self.reconnect(how)

    def reconnect(self, how):
        try:
            return [Conn(self, **how)]
        except (Cut, OSError):
            return []

    def report(self):
        return {"units": self.units, "seconds": time.monotonic() - self.began, "connections": self.connections,
                "most": self.most, "cuts": self.cuts, "goaways": {str(k): n for k, n in self.goaways.items()},
                "told": self.told}


def run(row, attack):
    """again: once more whenever the balancer has ended all of it, until the time is up."""
    while True:
        with contextlib.suppress(Cut):
            row(attack)
        if not attack.arguments.get("again"):
            return
        attack.left()


def main(topic, name, seconds, arguments):
    attack = Attack(float(seconds), json.loads(arguments))
    try:
        run(getattr(importlib.import_module(topic), name), attack)
    except Over:
        pass
    except Exception:  # the row is to see it
        print(json.dumps({"error": traceback.format_exc()}), flush=True)
        return
    print(json.dumps(attack.report()), flush=True)


if __name__ == "__main__":
    sys.modules["attacker"] = sys.modules["__main__"]  # rows import it: one Cut, one Over
    main(*sys.argv[1:])
