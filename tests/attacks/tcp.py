# SPDX-License-Identifier: Apache-2.0
"""TCP by hand."""

import raw_h2 as h2
import raw_tcp as tcp
from row import row


@row(long=True, seconds=(0, 75),
     counter="proxy.clients_stalled",
     open="a peer that answers probes with a byte now and then counts as one that makes progress")
def probes_of_a_shut_window_that_are_answered_by_a_byte_are_no_progress(a):
    """TH-40."""
    link = tcp.Link()
    made = tcp.peers(link, a, 20, window=2000)
    for peer in made:
        peer.speak(h2.window(0, 1 << 20), *(h2.headers(1 + 2 * i, h2.request("/page")) for i in range(10)))
        peer.window = 0
    turn = 0
    while a.going() and not all(peer.is_reset or peer.is_closed for peer in made):
        link.poll(0.2)
        turn += 1
        for peer in made:
            if turn % 100 == 0:  # every 20 s
                peer.send(tcp.ACK, window=1)
            elif any(got.payload for got in peer.got):
                peer.send(tcp.ACK, window=0)
            peer.got.clear()
        a.units += 1
    a.told["ended"] = sum(peer.is_reset or peer.is_closed for peer in made)


def scatter(a, flags):
    """Random segments around the window of eight live connections, which then go."""
    link = tcp.Link()
    made = tcp.peers(link, a, 8)
    for peer in made:
        peer.speak()
    junk = a.random.randbytes(1400)
    while a.left() > 0.3 and a.units < 40_000 * (1 + 4 * a.long):
        peer = a.random.choice(made)
        peer.send(a.random.choice(flags), junk[:a.random.randrange(1400)],
                  seq=peer.seq + a.random.randrange(-70_000, 270_000),
                  ack=peer.ack + a.random.choice((0, 0, a.random.randrange(-70_000, 70_000))))
        a.units += 1
        if a.units % 64 == 0:
            link.poll()
    for peer in made:
        for seq in {peer.seq, *(got.ack for got in peer.got[-50:])}:
            peer.send(tcp.RST, seq=seq)
    a.told["reset"] = sum(peer.is_reset for peer in made)


@row(seconds=(4, 20))
def random_segments_at_live_connections_leave_nothing_behind(a):
    """TH-37, TH-44."""
    scatter(a, (tcp.ACK, tcp.ACK | tcp.PSH, tcp.ACK | tcp.URG, tcp.ACK | tcp.FIN, tcp.SYN, tcp.RST, 0))


@row(seconds=(4, 20))
def random_data_at_live_connections_leaves_nothing_behind(a):
    """TH-37, TH-44."""
    scatter(a, (tcp.ACK, tcp.ACK | tcp.PSH, tcp.ACK | tcp.URG))
