# SPDX-License-Identifier: Apache-2.0
"""Requests that never end, and what they hold of what is there for all."""

import raw_h2 as h2
from row import STREAMS, row

PLACES = 1024  # of a cluster's breaker, by default


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


@row(seconds=(2, 20))
def requests_to_a_backend_that_never_answers_are_that_clusters_alone(a):
    """TH-22."""
    conn = a.connect()
    conn.send(b"".join(h2.headers(1 + 2 * n, h2.request("/hostile/silent")) for n in range(STREAMS)))
    a.units = STREAMS
    a.hold()
