# SPDX-License-Identifier: Apache-2.0
"""Clients that speak HTTP/1.1 and mean harm. The victim's requests share the backends' connections with theirs."""

import contextlib
import itertools
import time

from attacker import Conn, Cut
from http1_table import rows
from row import KIB, row

# A head, the windows of one request each way, and what TCP holds of both sides. In the long form windows grow.
HELD = 512 * KIB
HEAD = "{} {} HTTP/1.1\r\nHost: a.test\r\n{}\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
CHUNK = b"1\r\na\r\n"
BATCH = 500
PLACES = 768  # of clients in the world "small"
SMUGGLED = b"GET /dead/smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"  # its cluster has nobody


def request(path="/mark", fields="", method="GET"):
    return HEAD.format(method, path, fields).encode()


class Plain(Conn):
    """A connection whose answers are not looked at, but counted."""

    def __init__(self, a, reads=True, source=None):
        super().__init__(a, preface=False, reads=reads, source=source)
        self.heard = b""

    def pump(self):
        while self.reads:
            try:
                data = self.socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.cut()
            self.responses += (self.heard[-9:] + data).count(b"HTTP/1.1 ") - self.heard[-9:].count(b"HTTP/1.1 ")
            self.heard = (self.heard + data)[-600:]


def plain(a, n, **how):
    return [Plain(a, **how) for _ in range(n)]


def flood(a, first, payload, units, n=4):
    """The payload for ever behind the first bytes, on n connections, until they are cut."""
    conns = plain(a, n)
    a.send_each(conns, first, 0)
    while any(conn.is_open for conn in conns):
        a.left()
        a.send_each([conn for conn in conns if conn.is_open], payload, units)


def refused(a, first, n=40):
    """Each says so much, and waits for its end."""
    a.send_each(plain(a, n), first, 1)
    a.hold()


@row(long=True, seconds=(0, 20), cut_s=15, counter="proxy.clients_in_header", held=HELD)
def heads_of_http1_that_trickle_end_after_ten_seconds(a):
    """TH-122: slowloris, a byte in half a second, of a name or of a value."""
    a.send_each(plain(a, 100), lambda n: request()[:-2] + (b"x-" if n % 2 else b"x: "), 1)
    a.hold(lambda conn: conn.send(b"a"), every_s=0.5)


@row(long=True, seconds=(0, 20), cut_s=15, counter="proxy.clients_in_header", held=HELD)
def trailers_of_http1_that_trickle_end_after_ten_seconds(a):
    """TH-122: behind a body that was sent at once."""
    a.send_each(plain(a, 100), request("/mark", CHUNKED, "POST") + CHUNK + b"0\r\nx: ", 1)
    a.hold(lambda conn: conn.send(b"a"), every_s=0.5)


@row(spared=True, held=HELD, seconds=(2, 30))
def bodies_of_http1_that_trickle_hold_little(a):
    """TH-122, TH-79: a byte in a while, of a length and in chunks, on many connections."""
    conns = plain(a, 200)
    firsts = (request("/hostile/silent", CHUNKED, "POST"), request("/mark", "Content-Length: 100000\r\n", "POST"))
    a.send_each(conns, lambda n: firsts[n % 2], 1)
    turns = {conn: n % 2 for n, conn in enumerate(conns)}
    a.hold(lambda conn: conn.send(b"a" if turns[conn] else CHUNK), every_s=0.3)


@row(counter="h1.requests_chunked", held=HELD)
def chunks_of_one_byte_disturb_nobody(a):
    """TH-123: each with a size of its own."""
    flood(a, request("/hostile/silent", CHUNKED, "POST"), CHUNK * BATCH, BATCH, n=8)


@row(counter="h1.requests_chunked")
def extensions_of_chunks_are_dropped_at_little_cost(a):
    """TH-123: 250 bytes of them for one of body."""
    flood(a, request("/hostile/silent", CHUNKED, "POST"), (b"1;" + b"e" * 250 + b"\r\na\r\n") * 100, 100, n=8)


@row(counter="h1.malformed_chunk", cut_s=5, held=HELD)
def chunks_that_are_malformed_end_their_connection(a):
    """TH-123: sizes that overflow, signs, extensions without end, data that goes on."""
    kinds = (b"ffffffffffffffffff\r\n", b"-1\r\n", b"0x10\r\n", b"1;" + b"e" * 5000, b"1\r\nab\r\n",
             b"8000000000000000\r\n")
    refused(a, lambda n: request("/mark", CHUNKED, "POST") + kinds[n % len(kinds)])


@row(counter="h1.requests", held=HELD)
def pipelined_requests_in_number_disturb_nobody(a):
    """TH-124: in bursts of 500, whose answers are read."""
    flood(a, b"", request("/mark") * BATCH, BATCH)


@row(counter="h1.requests")
def pipelined_requests_whose_answers_nobody_reads_hold_one_answer(a):
    """TH-124: the rest of them stays in TCP, whose window closes."""
    conns = plain(a, 20, reads=False)
    while a.going():
        for conn in [conn for conn in conns if conn.is_open]:
            with contextlib.suppress(Cut):
                a.units += conn.try_send(request("/page") * 50) > 0
        a.sleep(0.05)


@row(long=True, seconds=(0, 90), cut_s=75, counter="proxy.clients_stalled", held=HELD)
def answers_of_http1_that_nobody_reads_end(a):
    """TH-124, TH-15: the kernel takes what the first thirty seconds ask for."""
    conns = plain(a, 20, reads=False)
    a.send_each(conns, request("/page") * 20, 20)
    a.hold()


@row(counter="h1.too_large_431", cut_s=5, held=HELD)
def heads_of_http1_that_are_too_large_end_their_connection(a):
    """TH-125: one field of 100 KiB, and many of few bytes; and trailers."""
    many = b"x: a\r\n" * 200 + b"\r\n"
    kinds = (request()[:-2] + b"x: " + b"a" * 100_000, request()[:-2] + many,
             request("/mark", CHUNKED, "POST") + b"0\r\n" + many,
             request()[:-2] + b"x: " + b" " * 100_000)
    refused(a, lambda n: kinds[n % len(kinds)])


@row(counter="h1.target_too_long_414", cut_s=5, held=HELD)
def targets_without_an_end_end_their_connection(a):
    """TH-125."""
    flood(a, b"GET /", b"a" * 10_000, 1, n=20)


@row(counter="h1.malformed_line_end", cut_s=5, held=HELD)
def empty_lines_without_an_end_end_their_connection(a):
    """TH-125: one is skipped."""
    flood(a, b"", b"\r\n" * BATCH, BATCH, n=20)


@row(world="small", counter="proxy.clients_evicted", seconds=(5, 20))
def idle_clients_of_http1_do_not_lock_others_out(a):
    """TH-126: each has had an answer, and keeps its connection."""
    crowd = a.crowd(PLACES, request())
    while a.going():
        crowd += a.crowd(8, request())
        a.sleep(0.05)


@row(counter="h1.answers")
def connections_of_http1_that_come_and_go_disturb_nobody(a):
    """TH-126: before their answer, and behind it."""
    while a.going():
        crowd = a.crowd(50, request("/mark", "Connection: close\r\n"))
        time.sleep(a.random.choice((0, 0.05)))
        for sock in crowd:
            sock.close()
        a.most = 50


def nothing_was_smuggled(outcome):
    told = outcome.report["told"]
    if told.get("stays"):
        return f"a connection stays behind {told['stays']}"
    return None if told.get("most") == 1 else f"{told} answers behind those of what is taken"


@row(counter=("h1.malformed_transfer_encoding", "h1.malformed_content_length", "h1.malformed_line_end"), held=HELD,
     least=300, check=nothing_was_smuggled)
def requests_that_two_servers_read_differently_end_their_connection(a):
    """TH-127: every refused row of the corpus, with a request hidden behind it, which nobody answers."""
    refused_ones = [each for each in rows() if len(each.verdict.split("+")[-1]) == 3]
    for each in itertools.cycle(refused_ones):
        conn = Plain(a)
        with contextlib.suppress(Cut):
            conn.send(each.payload + SMUGGLED + SMUGGLED)
            end = a.seconds_gone() + 5
            while a.seconds_gone() < end:
                conn.wait(seconds=1)
                conn.pump()
            a.told["stays"] = each.name
        a.told["most"] = max(a.told.get("most", 0), conn.responses - each.taken)
        a.units += 1
        conn.close()
