# SPDX-License-Identifier: Apache-2.0
"""Streams that end before their time: resets of the client's, and those that it has the balancer make."""

import raw_h2 as h2
from attacker import Cut
from row import row

BURST = 2000  # requests of one connection
ENOUGH = 100  # times that it was hung up on
GET = h2.request("/mark")


def gets_and_resets(n, block=GET):
    return b"".join(h2.headers(i, block) + h2.rst(i) for i in range(1, 2 * n, 2))


def storm(a, n, payload, units):
    """n connections by turns, each sent the payload whole and replaced by a new one at its end."""
    conns = a.connect(n)
    hung_up = 0
    while a.going() and hung_up < ENOUGH:
        for number, conn in enumerate(conns):
            try:
                conn.send(payload)
                a.units += units
                conn.close()
            except Cut:
                pass
            try:
                conns[number] = a.connect()
            except OSError:  # tried again in the next turn
                hung_up += 1


@row(counter="h2.abuse_resets", cut_s=5)
def requests_reset_at_once_cost_their_connection(a):
    """TH-01: CVE-2023-44487."""
    a.send_each(a.connect(4), gets_and_resets(10_000, h2.request("/hostile/silent")), 10_000)
    a.hold()


@row(counter=("h2.abuse_resets", "proxy.clients_over_budget"), calm=("proxy.upstream_goaways",), least=40_000)
def requests_reset_on_ever_new_connections_disturb_nobody(a):
    """TH-01, TH-83."""
    storm(a, 4, gets_and_resets(BURST), BURST)


@row(counter="proxy.upstreams_retired_resets", calm=("proxy.upstream_goaways",))
def resets_within_each_clients_budget_do_not_cost_a_shared_connection(a):
    """TH-01, TH-90: nghttpd takes 1000 and 33 a second; these are 6 times 900."""
    a.send_each(a.connect(6), gets_and_resets(900), 900)
    a.hold()


@row(counter="proxy.upstreams_retired_resets", calm=("proxy.upstream_goaways",))
def deadlines_of_a_millisecond_do_not_cost_a_shared_connection(a):
    """TH-01, TH-90, TH-91."""
    block = h2.grpc("/mark", ("grpc-timeout", "1m"))
    a.send_each(a.connect(6), b"".join(h2.headers(1 + 2 * i, block, end=False) for i in range(900)), 900)
    a.hold()


def made_to_reset(a, provoke, n=10_000):
    """CVE-2025-8671: provoke(stream) has the balancer reset a request that is under way. The resets are read: those
    that are not have a budget of their own."""
    conns = a.connect(4)
    for first in range(0, n, 100):
        for conn in [conn for conn in conns if conn.is_open]:
            try:
                conn.wait_resets(first)
                conn.send(b"".join(provoke(1 + 2 * i) for i in range(first, first + 100)))
                a.units += 100
            except Cut:
                pass
    a.hold()


def post(stream, *more):
    return h2.headers(stream, h2.request("/hostile/silent", *more, method="POST"), end=False)


def get(stream):
    return h2.headers(stream, h2.request("/hostile/silent"))


@row(counter="h2.abuse_resets", cut_s=5)
def windows_that_grow_by_nothing_are_charged_as_resets(a):
    """TH-02."""
    made_to_reset(a, lambda stream: get(stream) + h2.window(stream, 0))


@row(counter="h2.abuse_resets", cut_s=5)
def windows_that_overflow_are_charged_as_resets(a):
    """TH-02, TH-18."""
    made_to_reset(a, lambda stream: get(stream) + h2.window(stream, h2.MAX_WINDOW))


@row(counter="h2.conn_errors", cut_s=5)
def data_behind_the_end_of_a_request_costs_the_connection(a):
    """TH-02, TH-20."""
    made_to_reset(a, lambda stream: get(stream) + h2.data(stream, b"more"))


@row(counter="h2.conn_errors", cut_s=5)
def headers_behind_the_end_of_a_request_cost_the_connection(a):
    """TH-02, TH-20."""
    made_to_reset(a, lambda stream: get(stream) + get(stream))


@row(counter="h2.abuse_resets", cut_s=5)
def bodies_of_another_length_are_charged_as_resets(a):
    """TH-02, TH-19."""
    made_to_reset(a, lambda stream: post(stream, ("content-length", "3")) + h2.data(stream, b"more", end=True))


@row(counter="h2.abuse_resets", cut_s=5)
def streams_that_depend_on_themselves_are_charged_as_resets(a):
    """TH-02."""
    made_to_reset(a, lambda stream: get(stream) + h2.frame(h2.PRIORITY, 0, stream, stream.to_bytes(4, "big") + b"\x10"))


@row(counter="h2.abuse_resets", cut_s=5)
def priorities_of_a_wrong_length_are_charged_as_resets(a):
    """TH-02."""
    made_to_reset(a, lambda stream: get(stream) + h2.frame(h2.PRIORITY, 0, stream, b"\0\0\0\0"))


@row(counter="h2.abuse_resets", cut_s=5)
def malformed_requests_are_charged_as_resets(a):
    """TH-02, TH-19."""
    made_to_reset(a, lambda stream: h2.headers(stream, h2.request("/mark") + h2.literal("Upper", "case")))


@row(spared=True, calm=("h2.abuse_resets",))
def answers_that_a_client_says_are_too_large_for_it_cause_no_resets(a):
    """TH-03: CVE-2026-50560."""
    conn = a.connect(settings=((h2.MAX_HEADER_LIST, 1),))
    conn.send(h2.window(0, 1 << 30))
    for i in range(500):
        conn.send(h2.headers(1 + 2 * i, GET))
        a.units += 1
        a.sleep(0.002)
