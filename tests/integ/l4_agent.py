# SPDX-License-Identifier: Apache-2.0
"""An L4 tier that keeps no state: what is routed to tun0 goes to one host, within packets of its own.

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

TUNSETIFF = 0x400454ca
IFF_TUN, IFF_NO_PI = 1, 0x1000
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_DO = 10, 23, 2  # linux/in.h: DF, and no fragments
GUE_PORT = 6080
UDP_HEADER = 8


def open_tun(name):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def open_socket(source, kind, protocol):
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    sock = socket.socket(family, kind, protocol)
    if family == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_DO)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_DO)
    sock.bind((source, 0))
    return sock


def chain(hop):
    """GLB's private data: its type, the number of the next hop, how many there are, and each."""
    return struct.pack("!HBB", 0, 0, 1) + socket.inet_aton(hop)


class Tier:
    def __init__(self, kind, source, target, hop=None):
        self.kind, self.target, self.hop = kind, target, hop
        self.sent = self.longest = self.too_long = 0
        self.header = 40 if ":" in source else 20
        if kind == "ipip":
            self.by_protocol = {n: open_socket(source, socket.SOCK_RAW, n) for n in (4, 41)}
        else:
            self.udp = open_socket(source, socket.SOCK_DGRAM, 0)

    def send(self, packet):
        protocol = 4 if packet[0] >> 4 == 4 else 41
        if self.kind == "ipip":
            self._send(self.by_protocol[protocol], packet, 0, 0)
            return
        private = chain(self.hop) if self.kind == "glb" else b""
        gue = b"" if self.kind == "gue1" else struct.pack("!BBH", len(private) // 4, protocol, 0)
        self._send(self.udp, gue + private + packet, GUE_PORT, UDP_HEADER)

    def _send(self, sock, data, port, more):
        try:
            sock.sendto(data, (self.target, port))
        except OSError as e:
            if e.errno != errno.EMSGSIZE:
                raise
            self.too_long += 1
            return
        self.sent += 1
        self.longest = max(self.longest, self.header + more + len(data))


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def bare_ack(client, vip):
    """An IPv4 packet with an ACK of no connection."""
    addresses = socket.inet_aton(client) + socket.inet_aton(vip)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0x4000, 64, socket.IPPROTO_TCP, 0)
    ip = ip[:10] + struct.pack("!H", checksum(ip + addresses)) + addresses
    tcp = struct.pack("!HHIIBBHHH", 4444, 8080, 1, 1, 0x50, 0x10, 1000, 0, 0)
    pseudo = addresses + struct.pack("!HH", socket.IPPROTO_TCP, len(tcp))
    return ip + tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]


def stray(source, target, hop, client, vip):
    there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    there.bind((hop, GUE_PORT))
    there.settimeout(5)
    packet = bare_ack(client, vip)
    Tier("glb", source, target, hop).send(packet)
    data, (whence, _) = there.recvfrom(2048)
    print(json.dumps({"from": whence, "next": data[6], "whole": data.endswith(packet)}))


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
