# SPDX-License-Identifier: Apache-2.0
"""Clients that mean no harm, and look a little like those that do: what none of the defences may strike.
test_well_behaved.py runs them all at once. Each tells `finished`, the answers that came whole, and `failures`."""

import collections
import contextlib

import raw_h2 as h2
from attacker import Conn, Cut

PAGE, SMALL = 100_000, 600  # bytes of /page and /mark, as attack_world.py has them
ANSWER_S = 60  # until an answer must be there, beside what it takes by itself
# What Chrome says at first.
CHROME = ((h2.TABLE_SIZE, 65536), (h2.ENABLE_PUSH, 0), (h2.INITIAL_WINDOW, 6_291_456), (h2.MAX_HEADER_LIST, 262_144))
CHROME_WINDOW = 15_663_105
EXCLUSIVE_256 = b"\x80\0\0\0\xff"  # a dependency on stream 0
N_BROWSERS, N_POLLERS, N_SLOW = 4, 20, 20
POLLS = 5  # at a time, of each connection
SLOW_BYTES, SLOW_S = 1000, 0.1  # 10 kB/s
TELL = 4000  # bytes read, until windows are told


class Client(Conn):
    """Keeps what it asked for, and counts what became of it."""

    def __init__(self, a, number, **how):
        super().__init__(a, source=a.source(10 + number), **how)
        self.asked = {}  # stream: [bytes to come, until when]
        self.next = 1
        self.untold = 0  # bytes that no WINDOW_UPDATE has given back yet

    def ask(self, path, size, seconds=0.0, priority=False):
        block = h2.request(path, ("user-agent", "Mozilla/5.0"), ("accept-language", "en"))
        kind = (h2.headers(self.next, block) if not priority else
                h2.frame(h2.PRIORITY_UPDATE, 0, 0, self.next.to_bytes(4, "big") + b"u=1, i") +
                h2.frame(h2.HEADERS, h2.END_STREAM | h2.END_HEADERS | h2.WITH_PRIORITY, self.next,
                         EXCLUSIVE_256 + block) + h2.frame(h2.RESERVED, 0x55, self.next, b"grease"))
        self.asked[self.next] = [size, self.a.seconds_gone() + seconds + ANSWER_S]
        self.next += 2
        self.a.units += 1
        return kind

    def note(self, kind, flags, stream, payload):
        super().note(kind, flags, stream, payload)
        waiting = self.asked.get(stream)
        if kind == h2.GOAWAY:
            self.fail(f"GOAWAY {self.goaway}")
        elif kind == h2.RST and waiting:
            self.fail(f"reset {int.from_bytes(payload, 'big')}")
            del self.asked[stream]
        elif kind == h2.HEADERS and waiting and payload[:1] != h2.indexed(8):
            self.fail(f"status of another kind than 200: {payload[:20]}")
        elif kind == h2.DATA:
            self.untold += len(payload)
            if waiting:
                waiting[0] -= len(payload)
        if kind in (h2.HEADERS, h2.DATA) and flags & h2.END_STREAM and self.asked.pop(stream, None):
            if waiting[0]:
                self.fail(f"{waiting[0]} bytes are missing")
            self.a.told["finished"] += 1

    def fail(self, text):
        self.a.told["failures"].append(f"{self.a.seconds_gone():.0f} s: {text}")

    def late(self):
        gone = self.a.seconds_gone()
        for stream in [stream for stream, (_, due) in self.asked.items() if gone > due]:
            self.fail(f"no answer on stream {stream}")
            del self.asked[stream]


def live(a, clients, every_s, act):
    """act(client) by turns, until the time is up and all is answered; failures are told."""
    a.told.update(finished=0, failures=[])
    stop = a.seconds - ANSWER_S / 2  # nothing new is asked then
    while a.seconds_gone() < stop or any(client.asked for client in clients):
        for number, client in enumerate(clients):
            with contextlib.suppress(Cut):
                client.pump()
                client.late()
                clients[number] = act(client, a.seconds_gone() < stop) or client
            if not clients[number].is_open:
                a.told["failures"].append("the connection is gone")
                return
        a.sleep(every_s)


def browsers(a):
    """Bursts of 30 to 100 requests, a tenth of which are cancelled at once or a little later; PING; and a connection
    is left now and then."""
    due = collections.defaultdict(float)

    def opened(number):
        client = Client(a, number, settings=CHROME)
        client.number = number
        client.send(h2.window(0, CHROME_WINDOW))
        return client

    def burst(client):
        frames = [client.ask(*(("/page", PAGE) if a.random.random() < 0.3 else ("/mark", SMALL)), priority=True)
                  for _ in range(a.random.randrange(30, 101))]
        client.send(b"".join(frames) + h2.ping())

    def cancel_some(client):
        for stream in [stream for stream in client.asked if a.random.random() < 0.1]:
            if client.asked.pop(stream, None):  # sending reads, too: the answer may have come meanwhile
                client.send(h2.rst(stream))

    def act(client, asks):
        if client.untold > TELL:
            client.send(h2.window(0, client.untold))
            client.untold = 0
        if not asks or client.asked or a.seconds_gone() < due[client.number]:
            return None
        due[client.number] = a.seconds_gone() + a.random.uniform(0.5, 4)
        if a.random.random() < 0.05:
            client.close()
            client = opened(client.number)
        burst(client)
        cancel_some(client)
        return client
    live(a, [opened(number) for number in range(N_BROWSERS)], 0.02, act)


def long_polls(a):
    """A hundred requests that are answered after 20 to 40 s, each followed by the next one."""
    def act(client, asks):
        if asks and len(client.asked) < POLLS:
            client.send(client.ask("/hostile/later", 0, seconds=40))
    live(a, [Client(a, number) for number in range(N_POLLERS)], 0.1, act)


def slow_readers(a):
    """Two pages at a time, over a link of 10 kB/s."""
    def act(client, asks):
        with contextlib.suppress(BlockingIOError):
            data = client.socket.recv(SLOW_BYTES)
            if not data:
                client.cut()
            client.unread += data
            for frame in h2.frames_of(client.unread):
                client.note(*frame)
        if client.untold > TELL:
            tell = h2.window(0, client.untold)
            client.send(tell + b"".join(h2.window(stream, client.untold) for stream in client.asked))
            client.untold = 0
        while asks and len(client.asked) < 2:
            client.send(client.ask("/page", PAGE, seconds=4 * PAGE * SLOW_S / SLOW_BYTES))
    live(a, [Client(a, number, reads=False) for number in range(N_SLOW)], SLOW_S, act)
