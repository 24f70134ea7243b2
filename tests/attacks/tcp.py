# SPDX-License-Identifier: Apache-2.0
"""TCP by hand: segments that are forged, wrong, or meant to cost."""

import itertools
import time

import raw_h2 as h2
import raw_tcp as tcp
from row import KIB, MIB, row

BATCH = 4000  # packets that are made once and sent again and again
HALF_OPEN = {"tcp_connections": 4096, "arp_held_small": 4096}  # for 15 s: not waited for in the short form
HALF_OPEN_HELD = 4 * MIB
OUT_OF_ORDER_HELD = 96 * KIB  # of a connection: 32 ranges


def stranger(a):
    """An address and a port that nobody has."""
    return tcp.NET.format(a.random.randrange(2, 256), a.random.randrange(256)), a.random.randrange(1024, 65536)


def forged(a, flags, payload=b"", options=b"", **lies):
    source, port = stranger(a)
    return tcp.ip(source, tcp.VIP, tcp.segment(source, port, a.random.getrandbits(32), a.random.getrandbits(32), flags,
                                               payload, options, **lies))


def spray(a, packets):
    """The packets again and again, as fast as can be."""
    link = tcp.Link()
    frames = [link.head + packet for packet in packets]
    for number, frame in enumerate(itertools.cycle(frames)):
        link.send_frame(frame)
        a.units += 1
        if number % 256 == 0:
            link.poll()
            a.left()


@row(counter="tcp.cookies_out", held=HALF_OPEN_HELD, stays=HALF_OPEN, least=20_000)
def a_flood_of_syns_from_everywhere_disturbs_nobody(a):
    """TH-33."""
    spray(a, [forged(a, tcp.SYN, options=tcp.MSS_1460) for _ in range(2 * BATCH)])


@row(held=HALF_OPEN_HELD, stays=HALF_OPEN)
def a_flood_of_syns_from_one_address_disturbs_nobody(a):
    """TH-33."""
    spray(a, [tcp.ip("10.99.2.1", tcp.VIP, tcp.segment("10.99.2.1", port, port * 77, flags=tcp.SYN))
              for port in range(1024, 1024 + BATCH)])


@row(least=20_000)
def a_flood_of_acks_disturbs_nobody(a):
    """TH-33, TH-36: each may be a cookie."""
    spray(a, [forged(a, tcp.ACK, b"x" * 100) for _ in range(BATCH)])


@row(least=20_000)
def a_flood_of_resets_disturbs_nobody(a):
    """TH-34."""
    spray(a, [forged(a, tcp.RST) for _ in range(BATCH)])


@row(least=20_000)
def a_flood_of_syn_acks_and_fins_disturbs_nobody(a):
    """TH-34, TH-44."""
    kinds = (tcp.SYN | tcp.ACK, tcp.FIN, tcp.FIN | tcp.ACK, tcp.SYN | tcp.FIN, tcp.SYN | tcp.RST, 0, 63)
    spray(a, [forged(a, kind) for kind in kinds * (BATCH // 7)])


def at_the_victim(a, flags, payload=b"", options=(b"",)):
    """Segments that claim to be of the victim's own connections, swept over the sequence space."""
    ports = a.arguments["victim_ports"]
    a.told["ports"] = len(ports)
    step = (1 << 32) // (BATCH // max(1, len(ports)))
    spray(a, [tcp.ip("10.81.0.1", tcp.VIP, tcp.segment("10.81.0.1", port, seq, a.random.getrandbits(32), flags, payload,
                                                       a.random.choice(options)))
              for port in ports for seq in range(0, 1 << 32, step)])


@row(counter="tcp.drop_rst_sequence", least=20_000)
def blind_resets_end_none_of_the_victims_connections(a):
    """TH-34: RFC 5961 3."""
    at_the_victim(a, tcp.RST)


@row(counter="tcp.drop_syn", least=20_000)
def blind_syns_end_none_of_the_victims_connections(a):
    """TH-34: RFC 5961 4."""
    at_the_victim(a, tcp.SYN)


@row(counter=("tcp.drop_no_timestamp", "tcp.drop_old_timestamp"), least=20_000)
def blind_data_enters_none_of_the_victims_connections(a):
    """TH-34: RFC 5961 5."""
    stamps = [b"\1\1\x08\x0a" + a.random.randbytes(8) for _ in range(100)]
    at_the_victim(a, tcp.ACK | tcp.PSH, b"garbage", [b"", *stamps])


@row(counter=("tcp.drop_checksum", "tcp.drop_offset", "tcp.drop_options"), least=20_000, stays=HALF_OPEN)
def segments_with_wrong_sums_lengths_and_options_are_dropped(a):
    """TH-44."""
    wrong = [dict(bad=1), dict(words=4), dict(words=15), dict(options=b"\x02\x00\0\0"), dict(options=b"\x02\xff\0\0"),
             dict(options=b"\x08\x01\0\0"), dict(options=b"\x05\x0a" + bytes(6)), dict(options=b"\x01" * 40)]
    spray(a, [forged(a, tcp.SYN if n % 2 else tcp.ACK, **wrong[n % len(wrong)]) for n in range(BATCH)])


# -- connections


def asking(a, n, *frames, settings=(), **how):
    """n peers by hand that have said HTTP/2's preface and these frames."""
    link = tcp.Link()
    made = tcp.peers(link, a, n, **how)
    for peer in made:
        peer.speak(*frames, settings=settings)
    return link, made


def leave(link, made):
    """RST, so that nobody has to wait for the time that silence takes."""
    link.poll(0.05)
    for peer in made:
        for seq in {peer.seq, *(got.ack for got in peer.got[-50:])}:
            peer.send(tcp.RST, seq=seq)


def play(a, link, made, each):
    """each(peer) by turns until the time is nearly up; then all leave."""
    for peer in itertools.cycle(made):
        if a.left() < 0.3 and a.units >= a.least:
            break
        each(peer)
        a.units += 1
        if a.units % 64 == 0:
            link.poll()
    leave(link, made)


@row(held=OUT_OF_ORDER_HELD)
def one_byte_segments_in_reverse_are_linear_and_bounded(a):
    """TH-37: CVE-2018-5390."""
    link, made = asking(a, 8)
    turn = itertools.count()
    play(a, link, made, lambda peer: peer.send(tcp.ACK, b"x", seq=peer.seq + 60_000 - next(turn) // 8 % 60_000))


@row(held=OUT_OF_ORDER_HELD, counter="tcp.out_of_order")
def one_byte_gaps_on_many_connections_pin_no_buffers(a):
    """TH-38: and TH-37."""
    link, made = asking(a, 60)
    turn = itertools.count()
    play(a, link, made, lambda peer: peer.send(tcp.ACK, b"x", seq=peer.seq + 2 + 2 * (next(turn) // 60 % 64)))


@row(ci=False, seconds=(2, 20), check=lambda outcome: None if outcome.report["told"]["most"] >= 64
     else f"the largest segment has {outcome.report['told']['most']} bytes")
def a_tiny_mss_makes_no_tiny_segments(a):
    """TH-39: CVE-2019-11479. None tinier than 64 bytes."""
    link, made = asking(a, 8, *(h2.headers(1 + 2 * i, h2.request("/page")) for i in range(10)),
                        options=b"\x02\x04\x00\x08" + tcp.SACK_OK)
    sizes = []
    while a.left() > 0.3:
        link.poll(0.05)
        for peer in made:
            sizes += [len(got.payload) for got in peer.got if got.payload]
            peer.got.clear()
        a.units = len(sizes)
    a.told["most"] = max(sizes, default=0)
    for peer in made:
        peer.send(tcp.RST)


@row(ci=False, seconds=(2, 20))
def sacks_that_are_made_up_cost_little(a):
    """TH-39: CVE-2019-11477 to 11479."""
    link, made = asking(a, 8, h2.window(0, 1 << 20), *(h2.headers(1 + 2 * i, h2.request("/page")) for i in range(10)),
                        options=tcp.MSS_1460 + tcp.SACK_OK, acks=False)

    def sack(peer):
        blocks = b"".join(((peer.ack + a.random.randrange(1 << 17)) % tcp.WRAP).to_bytes(4, "big") for _ in range(6))
        peer.send(tcp.ACK, options=b"\1\1\5" + bytes([2 + len(blocks)]) + blocks)
    play(a, link, made, sack)


@row(seconds=(2, 20), held=400 * KIB)
def windows_that_shut_and_shrink_cost_little(a):
    """TH-40: CVE-2008-4609."""
    link, made = asking(a, 40, h2.window(0, 1 << 20), h2.headers(1, h2.request("/page")))
    sizes = itertools.cycle((0, 1, 65535, 10, 0, 3000))
    play(a, link, made, lambda peer: peer.send(tcp.ACK, window=next(sizes)))


@row(long=True, seconds=(0, 50), cut_s=45, counter="proxy.clients_stalled")
def windows_that_stay_shut_are_cut(a):
    """TH-15, TH-40: the peer answers each probe."""
    shut(a, lambda peer, turn: peer.send(tcp.ACK, window=0))


@row(long=True, seconds=(0, 90), cut_s=75, counter="proxy.clients_stalled")
def a_segment_now_and_then_behind_a_shut_window_is_no_progress(a):
    """TH-40: 1460 bytes in 20 s."""
    def answer(peer, turn):
        for got in peer.got:
            if got.payload and got.seq == peer.ack:
                peer.ack = (peer.ack + len(got.payload)) % tcp.WRAP
        peer.send(tcp.ACK, window=1460 if turn % 100 == 99 else 0)
    shut(a, answer)


def shut(a, answer):
    """Ten pages are under way on each of twenty connections when windows close. answer(peer, turn) goes out for each
    segment that comes, five turns a second."""
    link, made = asking(a, 20, h2.window(0, 1 << 20), *(h2.headers(1 + 2 * i, h2.request("/page")) for i in range(10)))
    for peer in made:
        peer.acks, peer.window = False, 0
    gone = set()
    for turn in itertools.count():
        link.poll(0.2)
        for peer in made:
            if peer.is_reset and peer not in gone:
                gone.add(peer)
                a.cuts.append(a.seconds - a.left())
            elif peer.got or turn % 100 == 99:
                answer(peer, turn)
                a.units += 1
            peer.got.clear()
        if len(gone) == len(made) or a.left() < 0.5:
            break
        time.sleep(0.2)
    a.told["cut"] = len(gone)
    leave(link, made)


@row(seconds=(1, 20), stays={pool: 20_000 for pool in ("clients", "tcp_connections", "h2_connections", "chunks")})
def connections_closed_by_halves_hold_nothing_for_long(a):
    """TH-45: FIN at once, then silence, which is heard for 30 s."""
    link = tcp.Link()
    while a.left() > 0.4:
        for peer in tcp.peers(link, a, 10):
            peer.speak()
            peer.send(tcp.FIN | tcp.ACK)
            a.units += 1
        link.poll()


@row(ci=False, seconds=(2, 20))
def connections_that_are_reset_at_once_hold_nothing(a):
    """TH-45."""
    link = tcp.Link()
    while a.left() > 0.2:
        for peer in tcp.peers(link, a, 10):
            peer.speak(h2.headers(1, h2.request("/page")))
            peer.send(tcp.RST)
            a.units += 1


@row(seconds=(2, 20))
def ports_that_are_used_again_at_once_are_served(a):
    """TH-45, TH-46: the same four addresses and ports, in TIME-WAIT or not."""
    link = tcp.Link()
    seq = 1 << 20
    a.most = 1
    while a.left() > 0.2:
        peer = tcp.Peer(link, "10.99.1.1", 5000)
        peer.first = seq
        seq += 1 << 20
        if not peer.connect():
            raise OSError("no connection from a port that was used before")
        peer.speak()
        peer.send(tcp.FIN | tcp.ACK)
        link.poll(0.01)
        a.units += 1
        a.connections += 1


@row(ci=False, seconds=(2, 20), check=lambda outcome: None if outcome.report["told"]["answers"] < 200 else
     f"{outcome.report['told']['answers']} ACKs for a loop of them")
def a_loop_of_acks_dies_down(a):
    """TH-36: each ACK that comes is answered with one outside of the window."""
    link, made = asking(a, 4)
    a.sleep(0.3)
    link.poll()
    for peer in made:
        peer.got.clear()
        peer.acks = False
    answers = 0
    while a.left() > 0.3:
        for peer in made:
            peer.send(tcp.ACK, seq=peer.seq - 100_000)
            peer.send(tcp.ACK, ack=peer.ack + 1_000_000)
            a.units += 2
        link.poll(0.002)
    for peer in made:
        answers += len(peer.got)
    a.told["answers"] = answers
    leave(link, made)


def scatter(a, flags):
    """Random segments around the window of eight live connections, which then go."""
    link, made = asking(a, 8)
    junk = a.random.randbytes(1400)
    play(a, link, made, lambda peer: peer.send(
        a.random.choice(flags), junk[:a.random.randrange(1400)], seq=peer.seq + a.random.randrange(-70_000, 270_000),
        ack=peer.ack + a.random.choice((0, 0, a.random.randrange(-70_000, 70_000)))))


@row(least=40_000)
def random_segments_at_live_connections_leave_nothing_behind(a):
    """TH-37, TH-44."""
    scatter(a, (tcp.ACK, tcp.ACK | tcp.PSH, tcp.ACK | tcp.URG, tcp.ACK | tcp.FIN, tcp.SYN, tcp.RST, 0))


@row(least=40_000)
def random_data_at_live_connections_leaves_nothing_behind(a):
    """TH-37."""
    scatter(a, (tcp.ACK, tcp.ACK | tcp.PSH, tcp.ACK | tcp.URG))
