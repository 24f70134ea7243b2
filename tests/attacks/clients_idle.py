# SPDX-License-Identifier: Apache-2.0
"""Clients that hold connections and say nothing, or half of something."""

import time

import raw_h2 as h2
import raw_tcp
from row import row

PLACES = 768  # of clients in the world "small"
HELLO = h2.PREFACE + h2.settings()


@row(world="small", counter="proxy.clients_refused",
     seconds=(5, 20), open="idle clients are never closed: who comes first has all the places for ever")
def idle_clients_do_not_lock_others_out(a):
    """TH-17: and whoever goes, another idle one takes the place."""
    crowd = a.crowd(PLACES, HELLO)
    while a.going():
        crowd += a.crowd(8, HELLO)
        a.sleep(0.05)


def reached(outcome):
    told = outcome.report["told"]
    return None if told["late"] else f"a backend that comes back is not reached: {told}"


@row(world="small", seconds=(9, 20), victim=False, least=5000, check=reached,
     open="half-open connections take the places that connections to backends need")
def a_flood_of_syns_beside_idle_clients_takes_no_place_of_backends(a):
    """TH-17, TH-33: 1500 a second, while a backend goes and comes back."""
    link = raw_tcp.Link()
    asking = a.connect()
    asking.keeps_answers = True
    crowd = a.crowd(PLACES, HELLO)
    a.told.update(crowd=len(crowd))
    stream = 1
    while a.going():
        for _ in range(150):
            source = raw_tcp.NET.format(a.random.randrange(256), a.random.randrange(256))
            link.send(raw_tcp.ip(source, raw_tcp.VIP, raw_tcp.segment(
                source, a.random.randrange(1024, 65536), a.random.getrandbits(32), flags=raw_tcp.SYN,
                options=raw_tcp.MSS_1460)))
            a.units += 1
        asking.send(h2.headers(stream, h2.request("/hostile/restarter")))
        time.sleep(0.1)
        asking.pump()
        stream += 2
        # Answered in the second half, when the backend is long back.
        a.told["late"] = sum(":status: 200" in answer for answered, answer in asking.answers.items()
                             if answered > stream // 2)
    a.told["answers"] = len(asking.answers)
