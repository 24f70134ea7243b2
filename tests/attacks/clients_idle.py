# SPDX-License-Identifier: Apache-2.0
"""Clients that hold connections and say nothing, or half of something."""

import contextlib
import itertools
import time

import raw_h2 as h2
import raw_tcp
from attacker import Cut
from row import row

PLACES = 768  # of clients in the world "small"
HELLO = h2.PREFACE + h2.settings()


@row(world="small", counter="proxy.clients_evicted", seconds=(5, 20))
def idle_clients_do_not_lock_others_out(a):
    """TH-17, TH-81: and whoever goes, another idle one takes the place."""
    crowd = a.crowd(PLACES, HELLO)
    while a.going():
        crowd += a.crowd(8, HELLO)
        a.sleep(0.05)


class Asking:
    """An honest client beside the attack, from an address of its own: what sends it away, it comes back from."""

    def __init__(self, a):
        self.a, self.conn, self.answers = a, None, 0

    def ask(self, path):
        """Counts what was answered with 200, and asks once more."""
        with contextlib.suppress(Cut, OSError):
            if not self.conn or not self.conn.is_open or self.conn.goaway is not None:
                self.conn = self.a.connect(source=self.a.source(9))
                self.conn.keeps_answers = True
                self.stream = itertools.count(1, 2)
            self.conn.pump()
            self.answers += sum(":status: 200" in text for text in self.conn.answers.values())
            self.conn.answers.clear()
            self.conn.send(h2.headers(next(self.stream), h2.request(path)))


def reached(outcome):
    told = outcome.report["told"]
    return None if told["late"] else f"a backend that comes back is not reached: {told}"


@row(ci=False, world="small", seconds=(8, 20), least=5000, check=reached)
def a_flood_of_syns_beside_idle_clients_takes_no_place_of_backends(a):
    """TH-33, TH-81, TH-82: 1500 a second, while a backend goes and comes back."""
    link = raw_tcp.Link()
    crowd = a.crowd(PLACES, HELLO)
    asking = Asking(a)
    early = 0
    a.told.update(crowd=len(crowd), late=0)
    while a.going():
        early = asking.answers if a.left() > a.seconds / 2 else early
        for _ in range(150):
            source = raw_tcp.NET.format(a.random.randrange(256), a.random.randrange(256))
            link.send(raw_tcp.ip(source, raw_tcp.VIP, raw_tcp.segment(
                source, a.random.randrange(1024, 65536), a.random.getrandbits(32), flags=raw_tcp.SYN,
                options=raw_tcp.MSS_1460)))
            a.units += 1
        asking.ask("/hostile/restarter")
        time.sleep(0.1)
        a.told["late"] = asking.answers - early  # in the second half, when the backend is long back
    a.told["answers"] = asking.answers


def say_and_wait(a, n, first, **how):
    conns = a.connect(n, preface=False, **how)
    a.send_each(conns, first, 1)
    a.hold()


@row(long=True, seconds=(0, 20), cut_s=15, counter="proxy.clients_silent")
def clients_that_say_nothing_go_after_ten_seconds(a):
    """TH-16."""
    say_and_wait(a, 200, b"")


@row(long=True, seconds=(0, 20), cut_s=15, counter="proxy.clients_silent")
def clients_that_say_half_a_preface_go_after_ten_seconds(a):
    """TH-16."""
    say_and_wait(a, 200, h2.PREFACE[:10])


@row(long=True, seconds=(0, 20), cut_s=15, counter="proxy.clients_silent")
def clients_without_settings_go_after_ten_seconds(a):
    """TH-16."""
    say_and_wait(a, 200, h2.PREFACE, reads=False)  # who reads also acknowledges ours


@row(long=True, seconds=(0, 20), cut_s=15, counter="proxy.clients_in_header")
def header_blocks_without_end_go_after_ten_seconds(a):
    """TH-04, TH-16: half a frame, and a frame without END_HEADERS."""
    whole = h2.headers(1, h2.request(), end_headers=False)
    conns = a.connect(100, preface=False)
    a.send_each(conns, lambda n: HELLO + (whole if n % 2 else whole[:20]), 1)
    a.hold()


@row(long=True, seconds=(0, 20), cut_s=15, counter="proxy.clients_in_header")
def header_blocks_that_trickle_go_after_ten_seconds(a):
    """TH-16: slowloris, a byte in a second."""
    whole = h2.headers(1, h2.request("/" + "a" * 1000))
    a.send_each(a.connect(100, preface=False), HELLO + whole[:40], 1)
    a.hold(lambda conn: conn.send(b"a"), every_s=1)


@row(counter="tcp.accepted", seconds=(2, 20))
def thousands_of_halves_of_something_are_held_beside_the_victim(a):
    """TH-16, TH-17."""
    kinds = (b"", h2.PREFACE[:10], h2.PREFACE, HELLO + b"\0\0\x20\1", HELLO)
    a.told["crowd"] = sum(len(a.crowd(600, first)) for first in kinds)
    while a.going():
        a.sleep(0.1)


@row(counter="h2.prefaces_tls", cut_s=5)
def tls_hellos_are_hung_up_on(a):
    """TH-23."""
    say_and_wait(a, 50, b"\x16\x03\x01\x00\xc4\x01\x00" + bytes(200))


@row(counter="h1.malformed_request_line", cut_s=5)
def other_protocols_are_hung_up_on(a):
    """TH-23."""
    say_and_wait(a, 50, b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


@row(counter="tcp.accepted")
def connections_that_come_and_go_disturb_nobody(a):
    """TH-17, TH-45."""
    while a.going():
        for sock in a.crowd(50, HELLO):
            sock.close()
        a.most = 50
