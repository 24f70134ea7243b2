# SPDX-License-Identifier: Apache-2.0
"""Clients that have shaken hands, and seal what no library would."""

import contextlib
import itertools

import raw_h2 as h2
import raw_tls as tls
from attacker import Cut
from row import KIB, row

WORLD = "tls"
HELD = 96 * KIB  # a record that waits for its rest, a request and its answer
BATCH = 50
FIRST = h2.PREFACE + h2.settings()


def versions(a):
    return [tls.context(a.arguments["pki"], version=version) for version in (tls.TLS_1_3, tls.TLS_1_2)]


def flood(a, make, how, n=4):
    """make(conn): a batch of records; each connection sends batches until it is cut."""
    conns = tls.secured(a, how, n)
    a.send_each(conns, lambda number: conns[number].seal(tls.DATA, FIRST), 1)
    for conn in itertools.cycle(conns):
        if not any(c.is_open for c in conns):
            return
        if conn.is_open:
            a.left()
            a.send_each([conn], make(conn), BATCH)


def once(a, make, hows, n=10):
    """make(conn) is all that each says; then it waits for its end."""
    conns = [conn for how in hows for conn in tls.secured(a, how, n)]
    a.send_each(conns, lambda number: make(conns[number]), 1)
    a.hold()


@row(world=WORLD, counter="tls.message_floods", cut_s=5, held=HELD)
def key_updates_in_number_cost_their_connection(a):
    """TH-118: each makes us derive keys."""
    flood(a, lambda conn: b"".join(conn.sealer.key_update() for _ in range(BATCH)), versions(a)[0])


@row(world=WORLD, counter="tls.message_floods", cut_s=5, held=HELD)
def key_updates_that_ask_for_ours_cost_their_connection(a):
    """TH-118: several that come together are answered once."""
    flood(a, lambda conn: b"".join(conn.sealer.key_update(asks=1) for _ in range(BATCH)), versions(a)[0])


@row(world=WORLD, counter="tls.empty_floods", cut_s=5, held=HELD)
def empty_records_cost_their_connection(a):
    """TH-118: by either version."""
    flood(a, lambda conn: b"".join(conn.seal(tls.DATA, b"") for _ in range(BATCH)), versions(a)[0])
    flood(a, lambda conn: b"".join(conn.seal(tls.DATA, b"") for _ in range(BATCH)), versions(a)[1])


@row(world=WORLD, counter="tls.empty_floods", cut_s=5, held=HELD)
def records_that_are_padding_alone_cost_their_connection(a):
    """TH-118: 16 KiB to open for nothing."""
    flood(a, lambda conn: b"".join(conn.seal(tls.DATA, b"", padding=16_383) for _ in range(BATCH)), versions(a)[0])


@row(world=WORLD, counter="tls.warning_floods", cut_s=5, held=HELD)
def warnings_in_number_cost_their_connection(a):
    """TH-118: by either version."""
    warning = bytes([tls.WARNING, tls.USER_CANCELED])
    for how in versions(a):
        flood(a, lambda conn: b"".join(conn.seal(tls.ALERT, warning) for _ in range(BATCH)), how)


@row(world=WORLD, counter="tls.records_in", spared=True, held=HELD)
def records_of_one_byte_disturb_nobody(a):
    """TH-119: requests, whose bytes come in a record each."""
    conns = tls.secured(a, versions(a)[0], 8)
    a.send_each(conns, lambda number: conns[number].seal(tls.DATA, FIRST), 1)
    for stream in itertools.count(1, 2):
        asked = h2.headers(stream, h2.request("/mark"))
        for conn in conns:
            a.left()
            conn.send(b"".join(conn.seal(tls.DATA, bytes([byte])) for byte in asked) +
                      conn.seal(tls.DATA, h2.window(0, 600)))
            a.units += len(asked)


@row(world=WORLD, long=True, seconds=(0, 30), counter="tls.late_records", cut_s=28, held=HELD)
def records_that_trickle_end_after_twenty_seconds(a):
    """TH-119: a byte in half a second; it never becomes whole."""
    conns = tls.secured(a, versions(a)[0], 50)
    a.send_each(conns, lambda number: conns[number].seal(tls.DATA, FIRST), 1)
    wholes = {conn: conn.seal(tls.DATA, bytes(16_000)) for conn in conns}
    sent = dict.fromkeys(conns, 0)

    def one_more(conn):
        conn.send(wholes[conn][sent[conn]:sent[conn] + 1])
        sent[conn] += 1
    a.hold(one_more, every_s=0.5)


@row(world=WORLD, counter="tls.records_in", held=HELD, seconds=(2, 10))
def halves_of_records_hold_no_more_than_a_record(a):
    """TH-119: 16,000 bytes of one that never ends, on many connections at once."""
    conns = tls.secured(a, versions(a)[0], 100)
    a.send_each(conns, lambda number: conns[number].seal(tls.DATA, FIRST), 1)
    a.send_each(conns, lambda number: conns[number].seal(tls.DATA, bytes(16_384))[:-1], 1)
    a.hold()


@row(world=WORLD, counter="tls.bad_tags", cut_s=3, held=HELD)
def records_with_wrong_tags_end_their_connection_at_once(a):
    """TH-118."""
    def spoiled(conn):
        sealed = conn.seal(tls.DATA, FIRST)
        return sealed[:-1] + bytes([sealed[-1] ^ 1])
    once(a, spoiled, versions(a))


@row(world=WORLD, counter="tls.oversize_records", cut_s=3, held=HELD)
def records_that_are_too_large_end_their_connection_by_their_header(a):
    """TH-119."""
    once(a, lambda conn: tls.record(tls.DATA, b"", length=0x4101 + 8), versions(a))


@row(world=WORLD, counter="tls.renegotiations", cut_s=3, held=HELD)
def attempts_to_renegotiate_end_their_connection(a):
    """TH-120: CVE-2009-3555, CVE-2011-1473."""
    once(a, lambda conn: conn.seal(tls.HANDSHAKE, tls.hello(versions=(0x0303,))), versions(a)[1:])


@row(world=WORLD, counter="tls.unexpected_messages", cut_s=3, held=HELD)
def messages_that_nobody_asked_for_end_their_connection(a):
    """TH-120: hellos, tickets, certificates after the handshake."""
    kinds = (tls.CLIENT_HELLO, tls.NEW_SESSION_TICKET, 11, 13, 99)
    once(a, lambda conn: conn.seal(tls.HANDSHAKE, tls.message(kinds[a.random.randrange(5)], bytes(200))),
         versions(a)[:1], n=20)


@row(world=WORLD, counter="tls.truncations", held=HELD)
def connections_that_end_without_close_notify_leave_nothing(a):
    """TH-121: in the midst of a request, of a record, of nothing."""
    how = versions(a)[0]
    while a.going():
        conns = tls.secured(a, how, 6)
        asked = h2.headers(3, h2.request("/hostile/silent", method="POST"), end=False)
        ways = (b"", FIRST, FIRST + h2.headers(1, h2.request("/page")) + asked)
        for number, conn in enumerate(conns):
            with contextlib.suppress(Cut):
                sealed = conn.seal(tls.DATA, ways[number % 3] or b"P")
                conn.send(sealed if number < 3 else sealed[:-5])
                a.units += 1
            conn.close()


@row(world=WORLD, counter="tls.closes_in", held=HELD)
def connections_that_end_with_close_notify_leave_nothing(a):
    """TH-121: and then say more, which is dropped."""
    how = versions(a)[0]
    while a.going():
        for conn in tls.secured(a, how, 6):
            with contextlib.suppress(Cut):
                conn.send(conn.seal(tls.DATA, FIRST + h2.headers(1, h2.request("/page"))) +
                          conn.seal(tls.ALERT, bytes([tls.WARNING, tls.CLOSE_NOTIFY])) +
                          b"".join(conn.seal(tls.DATA, b"more") for _ in range(20)))
                a.units += 1
            conn.close()
