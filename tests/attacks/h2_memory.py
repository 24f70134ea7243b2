# SPDX-License-Identifier: Apache-2.0
"""Little effort of a client, or of a backend with it, for much memory of the balancer."""

import itertools

import raw_h2 as h2
from resets import storm
from row import KIB, STREAMS, row

BIG_VALUE = "v" * 3900  # enters HPACK's table of 4 KiB once
BIG_INDEX = h2.indexed(62)  # the newest entry
WINDOW = 384 * KIB  # of a client's connection for bodies, at first


def gets(path, n=STREAMS):
    return b"".join(h2.headers(1 + 2 * i, h2.request(path)) for i in range(n))


def bodies(size, n, first=0):
    """To a backend that reads nothing, of requests that never end."""
    def one(stream):
        head = h2.headers(stream, h2.request("/hostile/deaf", method="POST"), end=False)
        return head + b"".join(h2.data(stream, bytes(min(16384, size - at))) for at in range(0, size, 16384))
    return b"".join(one(1 + 2 * i) for i in range(first, first + n))


def send_bodies(a, size):
    """On each of three connections as many as its window has room for."""
    for conn in a.connect(3):
        conn.wait_acks(1)
        n = min(STREAMS, conn.window // size)
        a.send_each([conn], bodies(size, n), n)
    a.hold()


@row(seconds=(3, 20))
def pages_that_are_not_read_are_bounded_for_each_connection(a):
    """TH-21, TH-86."""
    a.send_each(a.connect(6, settings=((h2.INITIAL_WINDOW, 0),)), gets("/page"), STREAMS)
    a.hold()


@row(seconds=(3, 20))
def pages_behind_a_tcp_window_that_is_shut_are_bounded_for_each_connection(a):
    """TH-86."""
    conns = a.connect(6, settings=((h2.INITIAL_WINDOW, h2.MAX_WINDOW),), reads=False)
    a.send_each(conns, h2.window(0, 1 << 30) + gets("/page"), STREAMS)
    a.hold()


@row(long=True, seconds=(0, 75), counter="proxy.streams_stalled")
def a_byte_of_window_now_and_then_is_no_progress(a):
    """TH-15, TH-21."""
    conn = a.connect(settings=((h2.INITIAL_WINDOW, 0),))
    conn.send(gets("/page"))
    a.units += STREAMS
    turn = itertools.count()

    def dribble(each):
        if next(turn) % 100 == 99:  # every 20 s
            each.send(b"".join(h2.window(1 + 2 * i, 1) for i in range(STREAMS)))
    a.hold(dribble)


@row(seconds=(2, 20), stays={"chunks": 256}, counter="h2.abuse_header_bytes", cut_s=5)
def header_lists_that_one_entry_of_the_table_makes_are_bounded(a):
    """TH-87: CVE-2026-49975: 30 bytes of each request mean 58 KiB to a backend that does not read."""
    first = h2.request("/hostile/deaf") + h2.literal("x-big", BIG_VALUE, 0x40) + BIG_INDEX * 13
    later = h2.request("/hostile/deaf") + BIG_INDEX * 14
    a.send_each(a.connect(8), b"".join(h2.headers(1 + 2 * i, later if i else first) for i in range(STREAMS)), STREAMS)
    a.hold()


@row(seconds=(2, 20), counter="h2.abuse_header_bytes", cut_s=5)
def header_lists_that_one_entry_makes_are_bounded_towards_an_honest_backend(a):
    """TH-87."""
    first = h2.request("/mark") + h2.literal("x-big", BIG_VALUE, 0x40) + BIG_INDEX * 13
    later = h2.request("/mark") + BIG_INDEX * 14
    frames = b"".join(h2.headers(1 + 2 * i, later if i else first) for i in range(STREAMS))
    a.send_each(a.connect(8, reads=False), frames, STREAMS)
    a.hold()


@row(counter=("h2.abuse_shared_header_bytes", "proxy.clients_over_budget"), least=600)
def header_lists_that_one_entry_makes_on_ever_new_connections_are_bounded(a):
    """TH-87, TH-133: each connection keeps within its own budget."""
    first = h2.request("/mark") + h2.literal("x-big", BIG_VALUE, 0x40) + BIG_INDEX * 13
    later = h2.request("/mark") + BIG_INDEX * 14
    storm(a, 4, b"".join(h2.headers(1 + 2 * i, later if i else first) for i in range(15)), 15)


@row(seconds=(3, 20), counter="proxy.answers_over_buffer")
def large_fields_of_answers_that_are_not_read_are_bounded(a):
    """TH-25, TH-86."""
    a.send_each(a.connect(3, reads=False), gets("/hostile/fat"), STREAMS)
    a.hold()


@row(ci=False, world="tight", seconds=(5, 20), counter="proxy.clients_cut_for_memory",
     open="a page of the victim's that holds more than a block does may be cut as well: 1 of 273")
def header_blocks_that_are_never_whole_cost_who_sent_them_their_connections(a):
    """TH-141: on more connections than there are chunks for; a victim that is cut would tell."""
    piece = bytes(15000)
    block = h2.headers(1, piece, end_headers=False) + 3 * h2.continuation(1, piece)
    a.send_each(a.connect(700), block, 1)
    a.hold()


@row(seconds=(3, 20))
def bodies_that_no_backend_takes_are_bounded(a):
    """TH-88, TH-89: small ones, of which copies are kept."""
    send_bodies(a, 8000)


@row(seconds=(3, 20), held=512 * KIB)
def large_bodies_that_no_backend_takes_are_bounded(a):
    """TH-88."""
    send_bodies(a, 64000)


@row(seconds=(3, 20), counter="proxy.requests_over_buffer")
def requests_with_large_fields_that_wait_are_bounded(a):
    """TH-89: for a backend that allows no streams; fields that HPACK's table does not know."""
    block = h2.request("/hostile/no_streams") + h2.literal("x-large", "v" * 10000)
    a.send_each(a.connect(3), b"".join(h2.headers(1 + 2 * i, block) for i in range(STREAMS)), STREAMS)
    a.hold()


@row(seconds=(4, 20), held=1792 * KIB, settles=True, counter="proxy.streams_cut_for_buffer")
def pages_and_bodies_that_nobody_takes_are_bounded_together(a):
    """TH-139: by a client that reads nothing, and a backend that reads nothing."""
    n_pages, size = 75, 16000
    n_bodies = min(STREAMS - n_pages, WINDOW // size)
    conns = a.connect(3, settings=((h2.INITIAL_WINDOW, h2.MAX_WINDOW),), reads=False)
    sent = h2.window(0, 1 << 30) + gets("/page", n_pages) + bodies(size, n_bodies, first=n_pages)
    a.send_each(conns, sent, n_pages + n_bodies)
    a.hold()


@row(seconds=(4, 20), held=1792 * KIB, settles=True)
def requests_that_wait_and_two_pages_are_bounded_together(a):
    """TH-89, TH-139: large fields and bodies for a backend that allows no streams, by a client that reads nothing."""
    head = h2.request("/hostile/no_streams", method="POST") + h2.literal("x-large", "v" * 8100)
    waiting = b"".join(h2.headers(5 + 2 * i, head, end=False) + h2.data(5 + 2 * i, bytes(4000))
                       for i in range(min(STREAMS - 2, WINDOW // 4000)))
    conns = a.connect(3, settings=((h2.INITIAL_WINDOW, h2.MAX_WINDOW),), reads=False)
    a.send_each(conns, h2.window(0, 1 << 30) + gets("/page", 2) + waiting, STREAMS)
    a.hold()
