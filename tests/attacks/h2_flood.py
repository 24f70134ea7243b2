# SPDX-License-Identifier: Apache-2.0
"""Frames in number that cost more than they should."""

import raw_h2 as h2
from row import MIB, row


@row(seconds=(2, 20), held=4 * MIB, spared=True)
def initial_windows_that_flap_over_a_thousand_streams_disturb_nobody(a):
    """TH-18: Slowly enough that what answers them is read; only the latency tells what each costs."""
    flap = b"".join(h2.settings((h2.INITIAL_WINDOW, size)) for size in (0, 65535) * 50)
    conns = a.connect(8, settings=((h2.INITIAL_WINDOW, 0),))
    a.send_each(conns, b"".join(h2.headers(1 + 2 * i, h2.request("/hostile/silent")) for i in range(1000)), 0)
    while True:
        for conn in conns:
            conn.wait_acks(a.units // 8)  # all that were sent to it
        a.send_each(conns, flap, 100)
