# SPDX-License-Identifier: Apache-2.0
"""Packets of tunnels that scapy makes, sound ones and others, and what each of them counts as. An agent (agent.py):

    l4_crafted.py SOCKET MAC               MAC: of shuntd's port, on whose link l0 is
    {"op": "rows"}                         {name: the counters that go up by one}
    {"op": "send", "name": …, "times": n}"""

import pathlib
import socket
import sys

from scapy.contrib.geneve import GENEVE
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import HBHOptUnknown, ICMPv6ND_NA, IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import GRE, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from agent import serve
from l4_packets import Chain, Gue, gue, outer, udp
from l4_world import SERVED, SERVED6, STRANGER, TIER, TIER6
from testbed import PORT, VIP, VIP6

FAR, FAR6 = "203.0.113.9", "2001:db8:99::9"
CLIENT, CLIENT6 = "198.51.100.7", "2001:db8:77::1"  # no way leads there, so that nobody answers our answers
SEGMENT = TCP(sport=4444, dport=PORT, seq=1, ack=1, flags="A")
SEGMENT4 = IP(src=CLIENT, dst=SERVED) / SEGMENT
SEGMENT6 = IPv6(src=CLIENT6, dst=SERVED6) / SEGMENT
MARKABLE = IP(src=CLIENT, dst=SERVED, tos=2) / SEGMENT
TUNNEL4 = IP(src=TIER, dst=SERVED) / SEGMENT4  # a tunnel's packet, for a VIP
WITHIN = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
CE = 3


def by4(payload, protocol=None, source=TIER):
    return outer(source, VIP, payload, protocol)


def by6(payload, protocol=None, source=TIER6):
    return outer(source, VIP6, payload, protocol)


def changed(packet, **fields):
    """With other fields in its first header."""
    made = packet.copy()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def cut(packet, length):
    return Raw(bytes(packet)[:length])


def sound():
    limit = HBHOptUnknown(otype=4, optdata=b"\x04")  # RFC 2473 4.1.1, as Linux's ip6tnl sends it
    return {
        "IPv4 in IPv4": by4(SEGMENT4),
        "IPv6 in IPv4": by4(SEGMENT6),
        "IPv4 in IPv6": by6(SEGMENT4),
        "IPv6 in IPv6": by6(SEGMENT6),
        "IPv4 in IPv6 with an option": by6(IPv6ExtHdrDestOpt(nh=4, options=[limit]) / SEGMENT4),
        "IPv4 in GUE": by4(gue(SEGMENT4)),
        "IPv6 in GUE": by4(gue(SEGMENT6)),
        "IPv4 in GUE over IPv6": by6(gue(SEGMENT4)),
        "IPv6 in GUE over IPv6": by6(gue(SEGMENT6)),
        "GUE without UDP's checksum": by4(udp(chksum=0) / Gue() / SEGMENT4),
        "GUE with private data": by4(gue(SEGMENT4, private=b"\xff" * 124)),
        "GUE of variant 1": by4(udp() / SEGMENT4),
        "GUE of variant 1 over IPv6": by6(udp() / SEGMENT6),
        "GLB without a next hop": by4(gue(SEGMENT4, private=bytes(Chain(next=1, hops=[FAR])))),
        "a mark": changed(by4(MARKABLE), tos=CE),
    }


def dropped():
    """With the tunnel's packet around it. Its fragments and wrong checksums of IPv4 are for unit tests: a bridge whose
    kernel filters packets keeps them."""
    return {
        "tunnel_forged": {
            "IPv4 from a neighbor": by4(SEGMENT4, source=STRANGER),
            "IPv4 from afar": by4(SEGMENT6, source=FAR),
            "IPv6 from afar": by6(SEGMENT4, source=FAR6),
            "GUE from a neighbor": by4(gue(SEGMENT4), source=STRANGER),
            "GUE over IPv6 from afar": by6(gue(SEGMENT6), source=FAR6),
            "GUE of variant 1 from afar": by4(udp() / SEGMENT4, source=FAR),
            "malformed GUE from afar": by4(gue(SEGMENT4, flags=1), source=FAR),
        },
        "tunnel_not_vip": {
            "to a port's address": by4(IP(src=CLIENT, dst=VIP) / SEGMENT),
            "to a port's IPv6 address": by6(gue(IPv6(src=CLIENT6, dst=VIP6) / SEGMENT)),
            "to nobody's address": by4(IP(src=CLIENT, dst=FAR) / SEGMENT),
        },
        "tunnel_checksum": {
            "wrong checksum": by4(udp(chksum=1) / Gue() / SEGMENT4),
            "wrong checksum over IPv6": by6(udp(chksum=1) / Gue() / SEGMENT4),
        },
        "tunnel_malformed": {
            "variant 2": by4(gue(SEGMENT4, variant=2)),
            "variant 3": by4(gue(SEGMENT4, variant=3)),
            "variant 1 of IP's version 5": by4(udp() / Raw(b"\x55" + bytes(39))),
            "a control message": by4(gue(SEGMENT4, control=1)),
            "a flag": by4(gue(SEGMENT4, flags=0x8000)),
            "a segment without a packet": by4(gue(Raw(bytes(SEGMENT)), protocol=6)),
            "nothing within": by4(gue(Raw(b""))),
            "an optional part beyond the end": by4(gue(SEGMENT4, words=31)),
            "a cut header": by4(udp() / cut(Gue() / SEGMENT4, 3)),
            "UDP shorter than its header": by4(udp(len=7) / Gue() / SEGMENT4),
            "UDP longer than its packet": by4(udp(len=400) / Gue() / SEGMENT4),
        },
        "tunnel_congested": {"a mark around what can have none": changed(by4(SEGMENT4), tos=CE)},
        "ip_unknown_protocol": {
            "GRE": by4(GRE() / SEGMENT4),
            "Geneve": by4(udp(dport=6081) / GENEVE() / WITHIN / SEGMENT4),
            "VXLAN": by4(udp(dport=4789) / VXLAN() / WITHIN / SEGMENT4),
        },
        "ip6_unknown_protocol": {"GRE over IPv6": by6(GRE() / SEGMENT6)},
        "ip_short": {"half a header": by4(cut(SEGMENT4, 19), 4)},
        "ip6_short": {"half a header of IPv6": by4(cut(SEGMENT6, 39), 41)},
        "ip6_martian": {"from a link": by4(IPv6(src="fe80::7", dst=SERVED6) / SEGMENT)},
        "icmp6_ignored": {"of a link": by4(IPv6(src=CLIENT6, dst=SERVED6, hlim=255) / ICMPv6ND_NA(tgt=CLIENT6))},
    }


def dropped_within():
    """When it has been taken out."""
    return {
        "tunnel_nested": {
            "IPIP in IPIP": by4(TUNNEL4),
            "IPIP in GUE": by6(gue(TUNNEL4)),
            "GUE in IPIP": by4(IP(src=TIER, dst=SERVED) / gue(SEGMENT4)),
        },
        "tunnel_hop_refused": {"GLB with a stranger as its next hop":
                               by4(gue(SEGMENT4, private=bytes(Chain(hops=[FAR]))))},
        "ip_checksum": {"a wrong checksum within": by4(changed(SEGMENT4, chksum=1))},
        "ip_fragment": {"a fragment within": by4(gue(changed(SEGMENT4, flags="MF")))},
        "ip_total_length": {"longer than its tunnel's packet": by4(changed(SEGMENT4, len=400))},
        "ip6_length": {"IPv6 longer than its tunnel's packet": by4(changed(SEGMENT6, plen=400))},
        "ip_martian": {
            "from a VIP": by4(IP(src=SERVED, dst=SERVED) / SEGMENT),
            "from a loopback": by6(IP(src="127.0.0.1", dst=SERVED) / SEGMENT),
        },
        "ip_unknown_protocol": {"UDP to a VIP": by4(IP(src=CLIENT, dst=SERVED) / UDP(sport=4444, dport=53))},
    }


def rows():
    """{name: (counters, packet)}"""
    made = {name: (["tunnel_packets"], packet) for name, packet in sound().items()}
    for table, more in ((dropped(), []), (dropped_within(), ["tunnel_packets"])):
        for counter, packets in table.items():
            made.update({name: ([counter, *more], packet) for name, packet in packets.items()})
    return made


class Crafted:
    def __init__(self, mac):
        here = pathlib.Path("/sys/class/net/l0/address").read_text().strip()
        self.ethernet = Ether(src=here, dst=mac)
        self.rows = rows()
        self.link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.link.bind(("l0", 0))

    def handle(self, request):
        if request["op"] == "rows":
            return {name: counters for name, (counters, _) in self.rows.items()}
        frame = bytes(self.ethernet / self.rows[request["name"]][1])
        for _ in range(request["times"]):
            self.link.send(frame)
        return len(frame)


if __name__ == "__main__":
    serve(sys.argv[1], Crafted(sys.argv[2]).handle)
