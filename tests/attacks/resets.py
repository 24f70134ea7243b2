# SPDX-License-Identifier: Apache-2.0
"""Streams that end before their time: resets of the client's, and those that it has the balancer make."""

import raw_h2 as h2
from attacker import Cut
from row import row

BURST = 2000  # requests of one connection
GET = h2.request("/mark")


def gets_and_resets(n, block=GET):
    return b"".join(h2.headers(i, block) + h2.rst(i) for i in range(1, 2 * n, 2))


def storm(a, n, payload, units):
    """n connections by turns, each sent the payload whole and replaced by a new one at its end."""
    conns = a.connect(n)
    while a.going():
        for number, conn in enumerate(conns):
            try:
                conn.send(payload)
                a.units += units
                conn.close()
            except Cut:
                pass
            conns[number] = a.connect()


@row(counter="h2.abuse_resets", cut_s=5)
def requests_reset_at_once_cost_their_connection(a):
    """TH-01: CVE-2023-44487."""
    a.send_each(a.connect(4), gets_and_resets(10_000, h2.request("/hostile/silent")), 10_000)
    a.hold()


@row(counter="h2.abuse_resets", calm=("proxy.upstream_goaways",), least=50_000,
     open="a budget of each connection is none for who opens another one")
def requests_reset_on_ever_new_connections_disturb_nobody(a):
    """TH-01."""
    storm(a, 4, gets_and_resets(BURST), BURST)


@row(calm=("proxy.upstream_goaways",),
     open="resets within each client's budget add up to more than a backend takes of a connection")
def resets_within_each_clients_budget_do_not_cost_a_shared_connection(a):
    """TH-01, TH-02: nghttpd takes 1000 and 33 a second; these are 6 times 900."""
    a.send_each(a.connect(6), gets_and_resets(900), 900)
    a.hold()


@row(calm=("proxy.upstream_goaways",),
     open="deadlines that pass are resets to the backend, and nobody's budget pays for them")
def deadlines_of_a_millisecond_do_not_cost_a_shared_connection(a):
    """TH-01."""
    block = h2.grpc("/mark", ("grpc-timeout", "1m"))
    a.send_each(a.connect(6), b"".join(h2.headers(1 + 2 * i, block, end=False) for i in range(900)), 900)
    a.hold()
