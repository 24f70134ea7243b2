# SPDX-License-Identifier: Apache-2.0
"""Backends that mean harm, or are broken (hostile_backend.py), asked by honest clients: nobody else is to notice."""

import collections
import contextlib

import raw_h2 as h2
from attacker import Cut
from row import MIB, STREAMS, row

EVERY_S = 0.005
ONE_ANSWERED = 2 * STREAMS + 1  # requests of two clients: one more than they may have open


def answered(outcome):
    return None if outcome.report["told"]["answered"] else "none of the requests was answered"


def ended(conn):
    """Of the client's requests."""
    return conn.responses + sum(conn.resets.values())


def ask(a, name, n=2, window=1 << 20):
    """Two hundred requests a second, of clients that read this much of each answer, if there are any, and have no more
    at a time than they may."""
    conns = a.connect(n, settings=((h2.INITIAL_WINDOW, window),))
    a.send_each(conns, h2.window(0, 1 << 30), 0)
    stream = 1
    asked = collections.Counter()
    while any(conn.is_open for conn in conns):
        for conn in filter(lambda conn: conn.is_open, conns):
            with contextlib.suppress(Cut):
                conn.pump()
        asking = [conn for conn in conns if conn.is_open and asked[conn] - ended(conn) < STREAMS]
        asked.update(asking)
        a.send_each(asking, h2.headers(stream, h2.request(f"/hostile/{name}")), 1)
        stream += 2
        a.told["answered"] = sum(conn.responses for conn in conns)
        a.sleep(EVERY_S * n)


@row(ci=False, counter="h2.abuse_informational", spared=True, seconds=(2, 20))
def informational_answers_without_end_are_bounded(a):
    """TH-24."""
    ask(a, "informational")


@row(ci=False, counter="h2.conn_errors", spared=True, seconds=(2, 20))
def pushes_end_the_backends_connection(a):
    """TH-26."""
    ask(a, "pusher")


@row(counter="h2.malformed_too_large", spared=True)
def trailers_that_are_too_large_end_their_stream_alone(a):
    """TH-25."""
    ask(a, "large_trailers")


@row(spared=True)
def fields_as_large_as_they_may_be_are_passed_on(a):
    """TH-25."""
    ask(a, "fat")


@row(counter="proxy.upstream_goaways", spared=True)
def resets_and_goaways_of_a_backend_leak_nothing(a):
    """TH-28: CVE-2023-35945."""
    ask(a, "resetter")


@row(spared=True)
def requests_to_a_backend_that_allows_no_streams_wait_bounded(a):
    """TH-29, TH-22."""
    ask(a, "no_streams")


@row(spared=True)
def a_backend_that_never_answers_harms_only_its_requests(a):
    """TH-30."""
    ask(a, "silent")


@row(spared=True, stays={"chunks": 256})
def a_backend_that_reads_nothing_harms_only_its_requests(a):
    """TH-30: bodies of 30 kB."""
    conns = a.connect(4)
    body = h2.data(1, bytes(10_000)) * 3
    a.send_each(conns, h2.headers(1, h2.request("/hostile/deaf", method="POST"), end=False) + body, 1)
    a.hold()


@row(check=answered, spared=True, least=ONE_ANSWERED)
def a_backend_that_hangs_up_at_once_is_tried_with_patience(a):
    """TH-31."""
    ask(a, "hangs_up")


@row(check=answered, spared=True, least=ONE_ANSWERED)
def a_backend_that_speaks_something_else_harms_nobody(a):
    """TH-27."""
    ask(a, "garbage")


@row(counter="h2.malformed_status", spared=True)
def malformed_answers_end_their_stream_alone(a):
    """TH-27."""
    ask(a, "malformed")


@row(ci=False, counter="h2.abuse_answers", spared=True, seconds=(2, 20))
def answers_that_a_backend_does_not_read_are_bounded(a):
    """TH-08: of PING, from a backend."""
    ask(a, "unread_answers")


@row(ci=False, counter="h2.abuse_continuation", spared=True, seconds=(2, 20))
def a_header_block_of_a_backend_without_end_is_bounded(a):
    """TH-04: from a backend."""
    ask(a, "endless_header")


@row(counter="h2.conn_errors", spared=True, seconds=(2, 20))
def a_backend_that_ignores_windows_loses_its_connection(a):
    """TH-18: from a backend whose answers nobody reads, so that no window grows again."""
    ask(a, "beyond_the_window", window=0)


def endless_bodies_went_on(outcome):
    return None if outcome.grown("h2.frames_out_data") > 1000 else "the body ended"


# Who takes as fast as its path has earned windows (HX-35).
@row(spared=True, seconds=(2, 20), held=5 * MIB, check=endless_bodies_went_on)
def a_body_without_end_is_read_as_fast_as_its_client_reads(a):
    """TH-15: eight streams, of which four are read."""
    reading, waiting = a.connect(settings=((h2.INITIAL_WINDOW, h2.MAX_WINDOW),)), a.connect()
    reading.send(h2.window(0, 1 << 30))
    for conn in (reading, waiting):
        conn.send(b"".join(h2.headers(1 + 2 * i, h2.request("/hostile/endless_body")) for i in range(4)))
        a.units += 4
    a.hold(every_s=0.01)


@row(ci=False, spared=True, seconds=(2, 20))
def answers_that_trickle_harm_nobody_else(a):
    """TH-30."""
    conns = a.connect(4)
    a.send_each(conns, b"".join(h2.headers(1 + 2 * i, h2.request("/hostile/dribbles")) for i in range(50)), 50)
    a.hold()
