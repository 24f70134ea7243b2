# SPDX-License-Identifier: Apache-2.0
"""Input that keeps within every budget, and that takes time: more of it than can be served."""

import functools

import raw_h2 as h2
from row import row

AT_ONCE = 500
BAD_PATH = h2.grpc("nowhere")  # the balancer answers it, in HEADERS alone


@functools.lru_cache(maxsize=4)
def requests(turn):
    first = 1 + 2 * AT_ONCE * turn
    return b"".join(h2.headers(stream, BAD_PATH) for stream in range(first, first + 2 * AT_ONCE, 2))


@row(counter="proxy.inputs_put_off")
def requests_in_number_hold_up_no_other_source(a):
    """TH-84."""
    a.flood(requests, AT_ONCE, n=8, again=True)
