# SPDX-License-Identifier: Apache-2.0
"""Below TCP: packets and frames of whoever is on the link, or forges addresses."""

import socket
import struct

import raw_tcp as tcp
from row import row
from tcp import BATCH, HALF_OPEN, HALF_OPEN_HELD, spray

UDP = 17
MORE_FRAGMENTS = 0x2000
VICTIM = "10.81.0.1"
BROADCAST = b"\xff" * 6


def somebody(a):
    return tcp.NET.format(a.random.randrange(2, 256), a.random.randrange(256))


def icmp(kind, code, rest, payload):
    body = struct.pack("!BBHI", kind, code, 0, rest) + payload
    return body[:2] + struct.pack("!H", tcp.checksum(body)) + body[4:]


def arp(link, operation, mac, address, target_mac, target, to):
    return (to + link.mac + struct.pack("!HHHBBH", tcp.ETH_ARP, 1, tcp.ETH_IP, 6, 4, operation) + mac +
            socket.inet_aton(address) + target_mac + socket.inet_aton(target) + bytes(18))


def spray_frames(a, make, distinct=BATCH):
    link = tcp.Link()
    frames = [make(link, n) for n in range(distinct)]
    while True:
        for number, frame in enumerate(frames):
            link.send_frame(frame)
            a.units += 1
            if number % 256 == 0:
                link.poll()
                a.left()


@row(least=20_000)
def a_storm_of_fragments_is_dropped(a):
    """TH-41: CVE-2018-5391: first ones, later ones, such as overlap. No counter tells: the kernel below net_af_packet
    puts fragments together, and drops these itself."""
    def piece(n):
        offset = a.random.choice((0, 0, 1, 3, 185, 8000))
        return tcp.ip(somebody(a), tcp.VIP, bytes(a.random.randrange(8, 1400)), ident=n % 64,
                      fragment=a.random.choice((MORE_FRAGMENTS, 0 if offset else MORE_FRAGMENTS)) | offset)
    spray(a, [piece(n) for n in range(BATCH)])


@row(counter="net.icmp_forged", least=20_000)
def forged_icmp_errors_end_none_of_the_victims_connections(a):
    """TH-42: RFC 5927: unreachable of all codes, and too long a packet, about the victim's connections;
    and what quotes no segment of ours."""
    def error(n):
        port = a.arguments["victim_ports"][n % len(a.arguments["victim_ports"])]
        quoted = struct.pack("!HHI", tcp.PORT, port, a.random.getrandbits(32))
        inner = tcp.ip(tcp.VIP if n % 3 else "10.81.0.7", VICTIM, quoted, length=1500)
        return tcp.ip(VICTIM, tcp.VIP, icmp(3, n % 16, 68, inner), protocol=tcp.ICMP)
    spray(a, [error(n) for n in range(BATCH)])


@row(counter="net.icmp_echo_limited", least=20_000)
def a_flood_of_echo_requests_is_limited(a):
    """TH-43."""
    spray(a, [tcp.ip(somebody(a), tcp.VIP, icmp(8, 0, n, bytes(1000)), protocol=tcp.ICMP) for n in range(BATCH)])


@row(counter=("net.ip_options", "net.ip_checksum", "net.ip_version", "net.ip_total_length"), least=20_000)
def packets_with_wrong_headers_are_dropped(a):
    """TH-44."""
    def wrong(n):
        source = somebody(a)
        segment = tcp.segment(source, 5000, n, flags=tcp.SYN)
        packet = tcp.ip(source, tcp.VIP, segment, options=b"\x83\x0b\x04" + bytes(9) if n % 5 == 0 else b"",
                        version=6 if n % 5 == 1 else 4, length=4000 if n % 5 == 2 else None)
        return packet[:10] + b"\0\1" + packet[12:] if n % 5 == 3 else packet[:18] if n % 5 == 4 else packet
    spray(a, [wrong(n) for n in range(BATCH)])


@row(counter="net.ip_martian", least=20_000)
def packets_from_nowhere_are_dropped(a):
    """TH-44: from our own address, loopback, multicast, broadcast."""
    sources = (tcp.VIP, "127.0.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0")
    spray(a, [tcp.ip(source, tcp.VIP, tcp.segment(source, 5000 + n, n, flags=tcp.SYN)) for n in range(BATCH // 5)
              for source in sources])


@row(counter="net.ip_unknown_protocol", least=20_000)
def a_flood_of_other_protocols_is_dropped(a):
    """TH-44: UDP, SCTP, GRE, and whatever."""
    spray(a, [tcp.ip(somebody(a), tcp.VIP, bytes(64), protocol=(UDP, 132, 47, n % 256 | 128)[n % 4])
              for n in range(BATCH)])


@row(least=20_000)
def segments_to_ports_that_nobody_listens_on_cost_little(a):
    """TH-44."""
    def knock(n):
        source = somebody(a)
        return tcp.ip(source, tcp.VIP, tcp.segment(source, 5000, n, flags=tcp.SYN, dport=1 + n))
    spray(a, [knock(n) for n in range(BATCH)])


@row(counter=("net.eth_vlan", "net.eth_unknown_type", "net.eth_not_ours"), least=20_000)
def frames_of_other_types_and_addresses_are_dropped(a):
    """TH-44."""
    def frame(link, n):
        to = link.vip_mac if n % 4 else b"\x02\0\0\0\0\x09"
        kind = (tcp.ETH_IP, 0x8100, 0x86dd, 0x88cc)[n % 4]
        return to + link.mac + struct.pack("!HH", kind, 7) + bytes(58)  # of VLAN 7, if that
    spray_frames(a, frame)


@row(least=20_000)
def a_flood_of_arp_requests_disturbs_nobody(a):
    """TH-48: each from another address of the link."""
    spray_frames(a, lambda link, n: arp(link, 1, b"\x02\0\0\0" + struct.pack("!H", n), f"10.81.0.{100 + n % 150}",
                                        bytes(6), tcp.VIP, BROADCAST))


@row(counter="net.arp_conflict")
def who_claims_our_address_is_answered_and_not_believed(a):
    """TH-47: RFC 5227."""
    link = tcp.Link()
    stranger = b"\x02\x66\x66\x66\x66\x66"
    while a.going():
        link.send_frame(arp(link, 1, stranger, tcp.VIP, bytes(6), tcp.VIP, BROADCAST))
        link.send_frame(arp(link, 2, stranger, tcp.VIP, stranger, tcp.VIP, BROADCAST))
        a.units += 2
        a.sleep(0.02)


@row()
def who_claims_the_victims_address_unasked_is_not_believed(a):
    """TH-47: the victim's connections go on, and new ones come. Claims are requests: an answer might meet a question of
    the balancer's, and who answers a question first is believed."""
    link = tcp.Link()
    stranger = b"\x02\x66\x66\x66\x66\x66"
    while a.going():
        link.send_frame(arp(link, 1, stranger, VICTIM, bytes(6), VICTIM, BROADCAST))
        link.send_frame(arp(link, 1, stranger, VICTIM, bytes(6), tcp.VIP, link.vip_mac))
        a.units += 2
        a.sleep(0.005)


@row(least=20_000, held=HALF_OPEN_HELD, stays=HALF_OPEN)
def neighbors_that_never_answer_hold_little(a):
    """TH-48: SYNs from addresses of the link that nobody has; each has to be asked for."""
    def syn(n):
        source = f"10.81.0.{20 + n % 200}"
        return tcp.ip(source, tcp.VIP, tcp.segment(source, 1024 + n, n, flags=tcp.SYN, options=tcp.MSS_1460))
    spray(a, [syn(n) for n in range(BATCH)])
