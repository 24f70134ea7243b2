# SPDX-License-Identifier: Apache-2.0
"""Requests that never end, and what they hold of what is there for all."""

import raw_h2 as h2
from row import STREAMS, row

PLACES = 1024  # of a cluster's breaker, by default
ONE_AFTER_THE_OTHER_S = 0.01


def endless(stream, path="/mark"):
    return h2.headers(stream, h2.request(path, method="POST"), end=False)


@row(counter="ended.over_share", least=PLACES)
def bodies_that_never_end_do_not_fill_a_clusters_breaker(a):
    """TH-22, TH-79."""
    a.send_each(a.connect(12), b"".join(endless(1 + 2 * n) for n in range(STREAMS)), STREAMS)
    a.hold()


@row(counter="ended.over_share", least=PLACES)
def bodies_that_never_end_on_many_connections_do_not_fill_a_breaker(a):
    """TH-22, TH-79."""
    a.send_each(a.connect(16, source=a.source(1)), b"".join(endless(1 + 2 * n) for n in range(PLACES // 10)),
                PLACES // 10)
    a.hold()


def crowd(a, n):
    """A connection of each of so many sources."""
    return [a.connect(source=a.source(1 + i)) for i in range(n)]


def ended_as_too_slow(outcome):
    """After half a minute."""
    if outcome.report["told"].get("long") and not outcome.grown("proxy.bodies_too_slow"):
        return "proxy.bodies_too_slow did not grow"
    return None


def one_after_the_other(a, conns, requests):
    """So that each gets most of what the one before it left, until all is taken."""
    for conn in conns:
        a.send_each([conn], requests, STREAMS)
        a.sleep(ONE_AFTER_THE_OTHER_S)


def fill(a, n, each=None, every_s=0.2):
    """A hundred requests of each of n sources, none of which is ever whole."""
    a.told["long"] = a.long
    one_after_the_other(a, crowd(a, n), b"".join(endless(1 + 2 * i) for i in range(STREAMS)))
    a.hold(each, every_s)


@row(counter="proxy.bodies_gave_way", check=ended_as_too_slow, seconds=(4, 40), least=60 * STREAMS)
def bodies_of_sixty_sources_that_never_end_shut_nobody_out(a):
    """TH-129, TH-130."""
    fill(a, 60)


@row(ci=False, counter="proxy.bodies_gave_way", check=ended_as_too_slow, seconds=(4, 40), least=40 * STREAMS)
def bodies_of_forty_sources_that_never_end_shut_nobody_out(a):
    """TH-129, TH-130."""
    fill(a, 40)


@row(counter="proxy.bodies_gave_way", check=ended_as_too_slow, seconds=(7, 40), least=60 * STREAMS)
def bodies_of_sixty_sources_that_trickle_shut_nobody_out(a):
    """TH-129, TH-130: a byte of each now and then."""
    bytes_of_all = b"".join(h2.data(1 + 2 * i, b"x") for i in range(STREAMS))
    fill(a, 60, lambda conn: conn.send(bytes_of_all), 10 if a.long else 2)


@row(counter="proxy.answers_gave_way", seconds=(4, 20), least=60 * STREAMS)
def answers_that_sixty_sources_leave_shut_nobody_out(a):
    """TH-137: with a window of nothing for each."""
    nothing = ((h2.INITIAL_WINDOW, 0),)
    conns = [a.connect(source=a.source(1 + i), settings=nothing) for i in range(60)]
    one_after_the_other(a, conns, b"".join(h2.headers(1 + 2 * i, h2.request("/page")) for i in range(STREAMS)))
    a.hold()


class Again:
    """Asks anew for each request of a connection that ended."""

    def __init__(self):
        self.next = {}

    def __call__(self, conn):
        first = self.next.get(conn, 1 + 2 * STREAMS)
        n = min(STREAMS, conn.responses - (first - 1 - 2 * STREAMS) // 2)
        conn.send(b"".join(endless(first + 2 * i) for i in range(n)))
        self.next[conn] = first + 2 * n


@row(counter="proxy.bodies_gave_way", check=ended_as_too_slow, seconds=(4, 40), least=60 * STREAMS)
def bodies_of_sixty_sources_that_ask_again_shut_nobody_out(a):
    """TH-131, TH-132."""
    fill(a, 60, Again())


@row(seconds=(2, 20))
def requests_to_a_backend_that_never_answers_are_that_clusters_alone(a):
    """TH-22."""
    conn = a.connect()
    conn.send(b"".join(h2.headers(1 + 2 * n, h2.request("/hostile/silent")) for n in range(STREAMS)))
    a.units = STREAMS
    a.hold()
