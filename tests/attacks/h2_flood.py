# SPDX-License-Identifier: Apache-2.0
"""Frames in number that cost more than they should."""

import itertools

import raw_h2 as h2
from attacker import Cut
from row import row

SILENT = h2.request("/hostile/silent")
BATCH = 500  # frames that are sent at once
OPEN_POST = h2.headers(1, h2.request("/hostile/silent", method="POST"), end=False)


def flood_beside_an_open_request(a, frames, units, n=4):
    conns = a.connect(n)
    a.send_each(conns, OPEN_POST, 0)
    while any(conn.is_open for conn in conns):
        a.send_each([conn for conn in conns if conn.is_open], frames, units)


@row(counter="h2.abuse_settings", cut_s=8)
def initial_windows_that_flap_over_a_thousand_streams_cost_their_connection(a):
    """TH-09, TH-18: slowly enough that what answers them is read."""
    flap = b"".join(h2.settings((h2.INITIAL_WINDOW, size)) for size in (0, 65535) * 10)
    conns = a.connect(8, settings=((h2.INITIAL_WINDOW, 0),))
    a.send_each(conns, b"".join(h2.headers(1 + 2 * i, SILENT) for i in range(1000)), 0)
    for sent in itertools.count(0, 20):
        for conn in [conn for conn in conns if conn.is_open]:
            try:
                conn.wait_acks(sent)
                conn.send(flap)
                a.units += 20
            except Cut:
                pass
        if not any(conn.is_open for conn in conns):
            return


@row(counter="h2.abuse_answers", cut_s=8)
def pings_whose_answers_nobody_reads_cost_their_connection(a):
    """TH-08: CVE-2019-9512."""
    a.flood(h2.ping() * BATCH, BATCH, n=4)


@row(spared=True)
def pings_whose_answers_are_read_disturb_nobody(a):
    """TH-08: as fast as one connection gets its answers."""
    conn = a.connect()
    while True:
        for _ in range(10):
            conn.send(h2.ping())
        a.units += 10
        conn.wait(seconds=0.1)
        conn.pump()


@row(ci=False, spared=True, seconds=(2, 30))
def pings_of_an_honest_keepalive_are_never_punished(a):
    """TH-08."""
    conn = a.connect()
    while True:
        conn.send(h2.ping())
        a.units += 1
        a.sleep(0.5)
        conn.pump()


@row(counter="h2.abuse_settings", cut_s=8)
def settings_in_number_cost_their_connection(a):
    """TH-09: CVE-2019-9515."""
    a.flood(h2.settings((h2.MAX_STREAMS, 100)) * BATCH, BATCH, n=4)


@row(counter="h2.abuse_settings_entries", cut_s=5)
def settings_of_many_entries_cost_their_connection(a):
    """TH-09: CVE-2020-11080."""
    a.flood(h2.settings(*((h2.INITIAL_WINDOW, n) for n in range(2000))), 2000, n=4)


@row(counter="h2.abuse_empty_frames", cut_s=5)
def empty_data_frames_cost_their_connection(a):
    """TH-10: CVE-2019-9518."""
    flood_beside_an_open_request(a, h2.data(1) * BATCH, BATCH)


@row(counter="h2.abuse_continuation", cut_s=5)
def continuation_frames_without_end_cost_their_connection(a):
    """TH-04: VU#421644."""
    conns = a.connect(4)
    for conn in conns:
        conn.wait_acks(1)  # within a header block nothing else may be sent, an ACK neither
    a.send_each(conns, h2.headers(1, h2.request(), end_headers=False), 0)
    while any(conn.is_open for conn in conns):
        a.send_each([c for c in conns if c.is_open], h2.continuation(1, h2.literal("x", "y")) * BATCH, BATCH)


@row(counter="h2.abuse_empty_frames", cut_s=5)
def continuation_frames_without_content_cost_their_connection(a):
    """TH-04, TH-10."""
    conns = a.connect(4)
    for conn in conns:
        conn.wait_acks(1)  # within a header block nothing else may be sent, an ACK neither
    a.send_each(conns, h2.headers(1, h2.request(), end_headers=False), 0)
    while any(conn.is_open for conn in conns):
        a.send_each([c for c in conns if c.is_open], h2.continuation(1) * BATCH, BATCH)


@row(counter="h2.abuse_priority", cut_s=5)
def priority_frames_cost_their_connection(a):
    """TH-13: CVE-2019-9513."""
    a.flood(h2.frame(h2.PRIORITY, 0, 1, b"\0\0\0\3\x10") * BATCH, BATCH, n=4)


@row(counter="h2.abuse_window_update", cut_s=5)
def window_updates_cost_their_connection(a):
    """TH-14."""
    a.flood(h2.window(0, 1) * BATCH, BATCH, n=4)


@row(counter="h2.abuse_window_update", cut_s=5)
def window_updates_of_closed_streams_cost_their_connection(a):
    """TH-14, TH-20."""
    conns = a.connect(4)
    a.send_each(conns, h2.headers(1, h2.request()) + h2.rst(1), 0)
    while any(conn.is_open for conn in conns):
        a.send_each([conn for conn in conns if conn.is_open], h2.window(1, 1) * BATCH, BATCH)


@row()
def bodies_in_frames_of_one_byte_hold_no_memory(a):
    """TH-11: CVE-2020-12603. The time that they take is told, and charged to nobody."""
    payload = h2.data(1, b"x") * BATCH
    conns = a.connect(4)
    a.send_each(conns, OPEN_POST, 0)
    sent = {conn: 0 for conn in conns}
    while any(conn.is_open and sent[conn] < 60_000 for conn in conns):
        ready = [conn for conn in conns if conn.is_open and sent[conn] < 60_000]
        a.send_each(ready, payload, BATCH)
        for conn in ready:
            sent[conn] += BATCH
    a.hold()


@row()
def data_frames_of_padding_alone_hold_no_memory(a):
    """TH-10, TH-11: 255 bytes of padding around nothing, as many as the window takes."""
    padded = h2.frame(h2.DATA, h2.PADDED, 1, b"\xff" + bytes(255))
    conns = a.connect(4)
    a.send_each(conns, OPEN_POST, 0)
    for _ in range(25):
        a.send_each([conn for conn in conns if conn.is_open], padded * 10, 10)
    a.hold()


@row(counter="h2.abuse_ignored_frames", cut_s=5)
def frames_of_unknown_types_cost_their_connection(a):
    """TH-20, TH-134."""
    a.flood(h2.frame(0xfa, 0xff, 1, b"?" * 100) * BATCH, BATCH, n=4)


@row(counter="h2.abuse_ignored_frames", cut_s=5)
def answers_to_pings_that_nobody_sent_cost_their_connection(a):
    """TH-134."""
    a.flood(h2.frame(h2.PING, h2.ACK, 0, bytes(8)) * BATCH, BATCH, n=4)


@row(counter="h2.abuse_ignored_frames", cut_s=5)
def header_blocks_of_streams_that_were_refused_cost_their_connection(a):
    """TH-20, TH-134: the stream is one that the balancer has reset."""
    refused = h2.headers(1, h2.request("/mark", ("Upper", "case")))
    a.flood(lambda turn: (b"" if turn else refused) + h2.headers(1, h2.request("/mark")) * BATCH, BATCH, n=4)


@row(counter="h2.settings_ack_unasked", cut_s=5)
def acks_of_settings_that_nobody_sent_cost_their_connection(a):
    """TH-135."""
    a.flood(h2.frame(h2.SETTINGS, h2.ACK) * BATCH, BATCH, n=4)


@row(counter=("h2.abuse_ignored_frames", "h2.settings_ack_unasked"))
def frames_that_ask_for_nothing_on_ever_new_connections_disturb_nobody(a):
    """TH-134, TH-135."""
    kinds = (h2.frame(0xfa), h2.frame(h2.SETTINGS, h2.ACK), h2.frame(h2.PING, h2.ACK, 0, bytes(8)))
    a.flood(lambda turn: kinds[turn % len(kinds)] * BATCH * 4, BATCH * 4, n=4, again=True)


@row(counter="h2.streams_refused_limit")
def streams_beyond_those_allowed_are_refused(a):
    """TH-21."""
    conn = a.connect()
    a.send_each([conn], b"".join(h2.headers(1 + 2 * i, SILENT) for i in range(4000)), 4000)
    a.hold()


@row(counter="h2.abuse_ignored_frames")
def goaway_frames_in_number_disturb_nobody(a):
    """TH-20, TH-134."""
    a.flood(h2.goaway(0, h2.NO_ERROR) * BATCH, BATCH, n=2, again=True)


@row(counter="h2.requests_too_large_431")
def header_lists_above_the_limit_are_refused_alone(a):
    """TH-05: as 61 fields of 1 KiB."""
    block = h2.request("/mark", *((f"x-{n}", "v" * 1000) for n in range(61)))
    frames = cut_up(1, block)
    a.flood(lambda turn: renumbered(frames, 1 + 2 * turn), 1, n=1)


def cut_up(stream, block):
    """HEADERS and CONTINUATION frames of 16 KiB: [(kind, flags, payload)]."""
    parts = [block[at:at + 16384] for at in range(0, len(block), 16384)]
    kinds = [h2.HEADERS] + [h2.CONTINUATION] * (len(parts) - 1)
    flags = [h2.END_STREAM] + [0] * (len(parts) - 1)
    flags[-1] |= h2.END_HEADERS
    return list(zip(kinds, flags, parts))


def renumbered(frames, stream):
    return b"".join(h2.frame(kind, flags, stream, payload) for kind, flags, payload in frames)


@row(counter="h2.abuse_header_bomb", cut_s=5)
def a_table_entry_named_ten_thousand_times_costs_its_connection(a):
    """TH-05: CVE-2016-6581."""
    block = h2.request() + h2.literal("x", "v" * 3900, 0x40) + h2.indexed(62) * 10_000
    a.flood(h2.headers(1, block), 1, n=4)


@row(counter="h2.abuse_header_bomb", cut_s=5)
def cookie_crumbs_count_as_fields(a):
    """TH-05: CVE-2026-47774."""
    block = h2.request() + h2.literal("cookie", "a=b", 0x40) + h2.indexed(62) * 15_000
    a.flood(h2.headers(1, block), 1, n=4)


@row(counter="h2.requests_too_large_431")
def many_tiny_fields_are_refused(a):
    """TH-06: CVE-2019-15226."""
    block = h2.request() + h2.literal("x", "", 0x00) * 1000
    a.flood(lambda turn: h2.headers(1 + 2 * turn, block), 1)


@row()
def hpack_tables_that_change_size_all_the_time_disturb_nobody(a):
    """TH-07."""
    shrink = h2.integer(0, 5, 0x20) + h2.integer(4096, 5, 0x20)
    block = shrink + h2.request("/none") + h2.literal("x-a", "v" * 2000, 0x40)
    a.flood(lambda turn: h2.headers(1 + 2 * turn, block), 1, n=2, again=True)


@row(counter="h2.conn_errors")
def hpack_that_is_wrong_ends_its_connection_alone(a):
    """TH-07: again and again: no such entry, a number that overflows, Huffman text with EOS in it."""
    wrong = (h2.indexed(0), h2.indexed(5000), b"\xff" * 12, b"\x00\x84\xff\xff\xff\xff\x00", b"\x3f\xe1\xff\x7f")
    a.flood(lambda turn: h2.headers(1, h2.request() + wrong[turn % len(wrong)]), 1, n=4, again=True)
