# SPDX-License-Identifier: Apache-2.0
"""An L4 tier that keeps no state: what is routed to tun0 goes to one host, within packets that scapy makes.

    l4_agent.py KIND FROM TO [HOP]        until SIGTERM; then it prints what it has sent
    l4_agent.py stray FROM TO HOP CLIENT VIP   sends one segment of no connection with a hop to go on to, and prints
                                          what comes there within 5 s

KIND: ipip, gue (variant 0), gue1 (variant 1) or glb (variant 0 with a chain of one hop)."""

import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys

from scapy.layers.inet import IP, TCP
from scapy.packet import Raw

from l4_packets import GUE_PORT, Chain, Gue, gue, outer, udp

TUNSETIFF = 0x400454ca
IFF_TUN, IFF_NO_PI = 1, 0x1000


def open_tun(name):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


class Tier:
    def __init__(self, kind, source, target, hop=None):
        self.kind, self.source, self.target = kind, source, target
        self.private = bytes(Chain(hops=[hop])) if kind == "glb" else b""
        self.sent = self.longest = self.too_long = 0
        # The packet is as it is given, but for IPv4's checksum and length, and cut by nobody.
        family = socket.AF_INET6 if ":" in source else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def _wrap(self, packet):
        protocol = 4 if packet[0] >> 4 == 4 else 41
        if self.kind == "ipip":
            return outer(self.source, self.target, Raw(packet), protocol)
        if self.kind == "gue1":
            return outer(self.source, self.target, udp() / Raw(packet))
        return outer(self.source, self.target, gue(Raw(packet), protocol=protocol, private=self.private))

    def send(self, packet):
        data = bytes(self._wrap(packet))
        try:
            self.socket.sendto(data, (self.target, 0))
        except OSError as e:
            if e.errno != errno.EMSGSIZE:
                raise
            self.too_long += 1
            return
        self.sent += 1
        self.longest = max(self.longest, len(data))


def stray(source, target, hop, client, vip):
    there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    there.bind((hop, GUE_PORT))
    there.settimeout(5)
    packet = bytes(IP(src=client, dst=vip, flags="DF") / TCP(sport=4444, dport=8080, seq=1, ack=1, flags="A"))
    Tier("glb", source, target, hop).send(packet)
    data, (whence, _) = there.recvfrom(2048)
    came = Gue(data)
    print(json.dumps({"from": whence, "next": Chain(came.private).next, "whole": bytes(came.payload) == packet}))


def main(kind, *words):
    if kind == "stray":
        stray(*words)
        return
    tier, tun = Tier(kind, *words), open_tun("tun0")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("ready", flush=True)
    try:
        while True:
            tier.send(os.read(tun, 65536))
    finally:
        print(json.dumps({"sent": tier.sent, "longest": tier.longest, "too_long": tier.too_long}))


if __name__ == "__main__":
    main(*sys.argv[1:])
