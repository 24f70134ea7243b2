# SPDX-License-Identifier: Apache-2.0
"""Clients that shake hands in number, by halves, or never to the end."""

import collections
import contextlib
import itertools
import ssl
import time

import raw_tls as tls
from attacker import SOURCES, Cut
from row import KIB, MIB, row

AT_ONCE = 50
PLACES = 1536  # of a worker's clients at one handshake thread
CROWD = 2 * PLACES
HALVES_A_SECOND = 500
OF_A_HANDSHAKE = 64 * KIB  # of the process's memory: the library's buffers and certificates
WORLD = "tls"


def hello_records(**how):
    return tls.records(tls.HANDSHAKE, tls.hello(**how), 1 << 14)


def resident_is_bounded(outcome):
    """However many have come, handshakes at a time have their bound, and so has what they take."""
    if not outcome.report["units"]:
        return "nothing was done"
    bound = 32 * MIB + PLACES * OF_A_HANDSHAKE
    return None if outcome.resident < bound else f"{outcome.resident} bytes more, of {bound} that may be"


def nth_source(a, n):
    """Of more than one net has, those of the next nets as well: half handshakes leave nothing behind."""
    return SOURCES.format((a.net + n // 250) % 256, 1 + n % 250)


def come_and_go(a, first, linger_s=0.0):
    while a.going():
        crowd = a.crowd(AT_ONCE, first() if callable(first) else first)
        time.sleep(linger_s)
        for sock in crowd:
            sock.close()
        a.most = AT_ONCE


def shake_hands(a, how, at_once=AT_ONCE):
    """Whole handshakes, many at a time; units are those that the server has judged, and found good."""
    while a.going():
        conns = []
        for _ in range(at_once):
            with contextlib.suppress(Cut, OSError):
                conns.append(tls.Secured(a, how))
        waiting = conns
        while waiting and a.going():
            still = []
            for conn in waiting:
                with contextlib.suppress(Cut):
                    conn.pump()
                    if not conn.shaken:
                        conn.turn()
                    if not conn.is_judged():
                        still.append(conn)
                    else:
                        a.units += 1
            waiting = still
            time.sleep(0.001)
        for conn in conns:
            conn.close()


@row(world=WORLD, counter="tls_clients.ok", check=resident_is_bounded, least=20)
def handshakes_in_number_disturb_nobody(a):
    """TH-112: and each is worth a signature of ours."""
    shake_hands(a, tls.context(a.arguments["pki"]))


@row(world=WORLD, counter="tls_clients.ok", check=resident_is_bounded, least=20, ci=False)
def handshakes_of_the_older_version_in_number_disturb_nobody(a):
    """TH-112."""
    shake_hands(a, tls.context(a.arguments["pki"], version=tls.TLS_1_2))


@row(world=WORLD, counter="tls_clients.lost", check=resident_is_bounded)
def hellos_alone_in_number_disturb_nobody(a):
    """TH-112: the client pays nothing, and goes before or after it was answered."""
    come_and_go(a, hello_records, linger_s=0.05)


@row(world=WORLD, counter="tls_clients.over_limit", seconds=(3, 25), held=32 * KIB, check=resident_is_bounded)
def half_handshakes_of_few_sources_leave_places_for_others(a):
    """TH-111, TH-112: of four sources, twice as many as there are places."""
    held = a.crowd(CROWD, hello_records())
    while a.going():
        late = a.crowd(8, hello_records())
        a.most -= len(late)
        a.sleep(0.05)
    assert len(held) == CROWD


@row(world=WORLD, counter="tls_clients.over_limit", seconds=(4, 25), held=32 * KIB, check=resident_is_bounded)
def half_handshakes_of_many_sources_leave_places_for_others(a):
    """TH-111: of 250 sources."""
    numbers = itertools.count()
    a.source = lambda number=None: nth_source(a, next(numbers) % 250)
    held = a.crowd(CROWD, hello_records())
    while a.going():
        a.sleep(0.05)
    assert len(held) == CROWD


@row(world=WORLD, counter="tls_clients.gave_way", seconds=(7, 25), held=32 * KIB, check=resident_is_bounded)
def half_handshakes_of_two_thousand_sources_give_way_to_others(a):
    """TH-140: hellos whole and half, of a source one or two; after three seconds they would have all places."""
    numbers, held = itertools.count(), collections.deque()
    firsts = itertools.cycle((hello_records(), hello_records()[:60]))
    a.source = lambda number=None: nth_source(a, next(numbers) % 2000)
    while a.going():
        held.append(a.crowd(AT_ONCE, next(firsts)))
        while len(held) * AT_ONCE > CROWD:
            for sock in held.popleft():
                sock.close()
        a.most = len(held) * AT_ONCE
        a.sleep(AT_ONCE / HALVES_A_SECOND)


@row(world=WORLD, long=True, seconds=(0, 20), cut_s=15, counter="tls_clients.timeout", held=32 * KIB)
def half_handshakes_end_after_ten_seconds(a):
    """TH-113: after a hello, and after half of one."""
    whole = hello_records()
    conns = a.connect(200, preface=False)
    a.send_each(conns, lambda n: whole if n % 2 else whole[:60], 1)
    a.hold()


@row(world=WORLD, long=True, seconds=(0, 20), cut_s=15, counter="tls_clients.timeout", held=32 * KIB)
def hellos_that_trickle_end_after_ten_seconds(a):
    """TH-113: slowloris, a byte in a half second."""
    whole = hello_records()
    conns = a.connect(100, preface=False)
    a.send_each(conns, whole[:11], 1)
    sent = dict.fromkeys(conns, 11)

    def one_more(conn):
        conn.send(whole[sent[conn]:sent[conn] + 1])
        sent[conn] += 1
    a.hold(one_more, every_s=0.5)


@row(world=WORLD, long=True, seconds=(0, 20), cut_s=15, counter="tls_clients.timeout", held=32 * KIB)
def connections_that_never_say_hello_end_after_ten_seconds(a):
    """TH-113: no thread is troubled by them."""
    a.connect(200, preface=False)
    a.hold()


@row(world=WORLD, counter="tls_clients.lost")
def hellos_in_records_of_one_byte_disturb_nobody(a):
    """TH-114: a thousand bytes of headers and of calls for 200 of a hello."""
    come_and_go(a, lambda: tls.records(tls.HANDSHAKE, tls.hello(), 1), linger_s=0.05)


@row(world=WORLD, counter="tls_clients.hello_too_large", cut_s=5)
def hellos_that_are_too_large_are_refused(a):
    """TH-114: whole and in pieces, in records of any size."""
    large = tls.hello(tls.extension(0x5a5a, bytes(17_000)))
    ways = [tls.records(tls.HANDSHAKE, large, size) for size in (16_384, 1000, 100)]
    conns = a.connect(60, preface=False)
    a.send_each(conns, lambda n: ways[n % len(ways)], 1)
    a.hold()


@row(world=WORLD, counter="tls_clients.hello_too_large", cut_s=5)
def hellos_without_an_end_are_refused(a):
    """TH-114: as long as the library would gather, of which it sends as much as is taken."""
    conns = a.connect(20, preface=False)
    a.send_each(conns, tls.record(tls.HANDSHAKE, b"\1\1\xf0\0" + bytes(16_000)), 1)
    while any(conn.is_open for conn in conns):
        a.send_each([conn for conn in conns if conn.is_open], tls.record(tls.HANDSHAKE, bytes(16_000)), 1)


@row(world=WORLD, counter="tls_clients.malformed", cut_s=5)
def what_is_no_tls_is_hung_up_on(a):
    """TH-114: HTTP in clear text, noise, records of other types and lengths."""
    kinds = (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", a.random.randbytes(600), tls.record(tls.DATA, b"x" * 100),
             tls.record(tls.HANDSHAKE, b"", length=0xffff) + bytes(70_000), tls.record(99, b"x"),
             tls.record(tls.HANDSHAKE, tls.message(tls.KEY_UPDATE, b"\1")),
             tls.record(tls.HANDSHAKE, tls.message(tls.CLIENT_HELLO, a.random.randbytes(300))))
    while a.going():
        conns = a.connect(len(kinds), preface=False)
        a.send_each(conns, lambda n: kinds[n], 1)
        for conn in conns:
            with contextlib.suppress(Cut):
                while conn.is_open:
                    conn.wait()
                    conn.pump()


@row(world=WORLD, counter=("tls_clients.peer_alert", "tls_clients.malformed"), cut_s=5)
def alerts_in_number_end_a_handshake(a):
    """TH-115: in place of a hello and behind it; fatal ones, and warnings without end."""
    fatal = tls.record(tls.ALERT, bytes([tls.FATAL, 40]))
    warnings = tls.record(tls.ALERT, bytes([tls.WARNING, tls.USER_CANCELED])) * 500
    firsts = (fatal, warnings, hello_records() + fatal, hello_records(versions=(0x0303,)) + fatal,
              hello_records(versions=(0x0303,)) + warnings)
    conns = a.connect(50, preface=False)
    a.send_each(conns, lambda n: firsts[n % len(firsts)], 1)
    a.hold()


@row(world=WORLD, counter="tls_clients.malformed", cut_s=5)
def empty_records_in_number_end_a_handshake(a):
    """TH-115: and change_cipher_spec without end."""
    kinds = (tls.record(tls.HANDSHAKE, b""), tls.record(tls.CHANGE_CIPHER_SPEC, b"\1"), tls.record(tls.DATA, b""))
    conns = a.connect(30, preface=False)
    a.send_each(conns, lambda n: hello_records() + kinds[n % len(kinds)] * 500, 1)
    while any(conn.is_open for conn in conns):
        for number, conn in enumerate(conns):
            if conn.is_open:
                a.send_each([conn], kinds[number % len(kinds)] * 500, 500)


@row(world=WORLD, counter="tls_clients.lost")
def tickets_that_were_made_up_cost_no_more_than_a_handshake(a):
    """TH-116: of either version, short and long; a full handshake follows, or nothing."""
    def firsts():
        while True:
            for size in (0, 1, 16, 100, 192, 2000, 15_000):
                ticket = a.random.randbytes(size)
                yield hello_records(last=tls.pre_shared_key(ticket or b"x"))
                yield hello_records(versions=(0x0303,), last=tls.extension(35, ticket))
    each = firsts()
    come_and_go(a, lambda: next(each), linger_s=0.02)


@row(world=WORLD, counter="tls_clients.flight_too_large")
def chains_of_certificates_that_are_huge_are_refused(a):
    """TH-117: 70 KiB of them."""
    shake_hands(a, tls.context(a.arguments["pki"], chain="huge"))


@row(world=WORLD, counter="tls_clients.ok", check=resident_is_bounded, seconds=(3, 20), least=1)
def chains_of_certificates_as_large_as_they_may_be_disturb_nobody(a):
    """TH-117: 23 KiB of them, all but one of no use, and each read at a third of a millisecond."""
    shake_hands(a, tls.context(a.arguments["pki"], chain="long"), at_once=10)


@row(world=WORLD, counter="tls_clients.unknown_ca")
def strangers_in_number_are_refused(a):
    """TH-117: their certificates are of a CA that nobody knows."""
    shake_hands(a, tls.context(a.arguments["pki"], chain="stranger"))


@row(world=WORLD, counter="tls_clients.lost")
def clients_that_stop_in_the_midst_of_their_handshake_leave_nothing(a):
    """TH-113: at any byte of what they have to say last."""
    how = tls.context(a.arguments["pki"], chain="long")
    while a.going():
        conns = []
        for _ in range(10):
            with contextlib.suppress(Cut, OSError, ssl.SSLError):
                conn = tls.Secured(a, how)
                conns.append(conn)
                with contextlib.suppress(ssl.SSLWantReadError):
                    conn.tls.do_handshake()
                conn.send(conn.out.read())
                conn.wait(seconds=1)
                conn.pump()
                with contextlib.suppress(ssl.SSLWantReadError):
                    conn.tls.do_handshake()
                last = conn.out.read()
                conn.send(last[:a.random.randrange(len(last) or 1)])
                a.units += 1
        for conn in conns:
            conn.close()
