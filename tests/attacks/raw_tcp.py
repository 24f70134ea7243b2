# SPDX-License-Identifier: Apache-2.0
"""Frames by hand, from ARP to TCP, out of the client's interface. The addresses 10.99.0.0/16 are nobody's: the balancer
answers them through its gateway, this namespace, whose kernel drops what is not for it, and a Link sees it."""

import ctypes
import fcntl
import select
import socket
import struct
import time

import raw_h2 as h2

INTERFACE, VIP, PORT = "c0", "10.81.0.10", 8080
NET = "10.99.{}.{}"
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
TCP, ICMP = 6, 1
ETH_IP, ETH_ARP = 0x0800, 0x0806
SIOCGARP, SO_ATTACH_FILTER = 0x8954, 26
# Classic BPF: what is for 10.99.0.0/16, and nothing else.
FOR_US = [(0x28, 0, 0, 30), (0x15, 0, 1, 0x0a63), (0x06, 0, 0, 0x40000), (0x06, 0, 0, 0)]
MSS_1460 = b"\x02\x04\x05\xb4"
SACK_OK = b"\x04\x02\x01\x01"
HANDSHAKE_S, SYN_AGAIN_S = 8, 1
FIRST_PORT = 2000
WRAP = 1 << 32


def checksum(data):
    if len(data) & 1:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def ip(source, target, payload, protocol=TCP, ident=0, fragment=0, ttl=64, options=b"", version=4, length=None):
    """fragment: flags and offset as they stand in the header. length: what the header says, if it is to lie."""
    words = 5 + len(options) // 4
    length = 4 * words + len(payload) if length is None else length
    head = struct.pack("!BBHHHBBH4s4s", version << 4 | words, 0, length, ident, fragment, ttl, protocol, 0,
                       socket.inet_aton(source), socket.inet_aton(target)) + options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def segment(source, sport, seq, ack=0, flags=ACK, payload=b"", options=b"", window=65535, target=VIP, dport=PORT,
            bad=0, words=None):
    """A TCP segment with the right checksum, plus `bad`. words: the data offset, if it is to lie."""
    options += bytes(-len(options) % 4)
    words = 5 + len(options) // 4 if words is None else words
    head = struct.pack("!HHIIBBHHH", sport, dport, seq % WRAP, ack % WRAP, words << 4, flags, window, 0, 0)
    tcp = head + options + payload
    pseudo = socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!BBH", 0, TCP, len(tcp))
    return tcp[:16] + struct.pack("!H", checksum(pseudo + tcp) + bad & 0xffff) + tcp[18:]


class Got:
    """A segment that came: data's beginning, or its end if it has none, as usual."""

    def __init__(self, packet):
        at = 4 * (packet[0] & 15)
        self.source_port, self.port, self.seq, self.ack, offset, self.flags, self.window = struct.unpack(
            "!HHIIBBH", packet[at:at + 16])
        self.address = socket.inet_ntoa(packet[16:20])
        self.payload = packet[at + 4 * (offset >> 4):int.from_bytes(packet[2:4], "big")]


class Link:
    """Sends frames to the balancer, and gives what comes for 10.99.0.0/16 to the Peer that it is for."""

    def __init__(self):
        self.out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.out.bind((INTERFACE, 0))
        self.mac = self.out.getsockname()[4]
        self.vip_mac = mac_of(VIP)
        self.head = self.vip_mac + self.mac + struct.pack("!H", ETH_IP)
        self.input = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_IP))
        self._filter()
        self.input.bind((INTERFACE, ETH_IP))
        self.input.setblocking(False)
        self.peers = {}
        self.n_in = 0

    def _filter(self):
        code = b"".join(struct.pack("HBBI", *step) for step in FOR_US)
        buffer = ctypes.create_string_buffer(code)
        self.input.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                              struct.pack("HL", len(FOR_US), ctypes.addressof(buffer)))

    def send(self, packet):
        self.send_frame(self.head + packet)

    def send_frame(self, frame):
        try:
            self.out.send(frame)
        except OSError:  # the queue is full: a wire would have lost it, too
            pass

    def poll(self, seconds=0.0):
        """Gives out what has come; waits for the first so long. How many there were."""
        select.select([self.input], [], [], seconds)
        found = 0
        while True:
            try:
                packet = self.input.recv(1 << 16)[14:]
            except BlockingIOError:
                return found
            found += 1
            self.n_in += 1
            if packet[9] == TCP:
                got = Got(packet)
                peer = self.peers.get((got.address, got.port))
                if peer:
                    peer.take(got)


def mac_of(address):
    """Of a neighbour that this namespace has spoken to."""
    request = struct.pack("HH4s8s16sI16s16s", socket.AF_INET, 0, socket.inet_aton(address), bytes(8), bytes(16), 0,
                          bytes(16), INTERFACE.encode())
    with socket.socket() as sock:
        answer = fcntl.ioctl(sock, SIOCGARP, request)
    return answer[18:24]


class Peer:
    """One end of a connection to the balancer, by hand: it acknowledges what comes, but only if `acks`."""

    def __init__(self, link, address, port, window=65535, options=MSS_1460, acks=True):
        self.link, self.address, self.port = link, address, port
        self.window, self.options, self.acks = window, options, acks
        self.seq = self.first = 0
        self.ack = 0
        self.got = []  # segments since this was looked at last
        self.data = bytearray()
        self.is_reset = self.is_closed = self.open = False
        link.peers[address, port] = self

    def packet(self, flags=ACK, payload=b"", seq=None, ack=None, window=None, options=b"", **lies):
        return ip(self.address, VIP, segment(
            self.address, self.port, self.seq if seq is None else seq, self.ack if ack is None else ack, flags, payload,
            options, self.window if window is None else window, **lies))

    def send(self, flags=ACK, payload=b"", **more):
        """The next segment, or one with another sequence number; that one does not count."""
        self.link.send(self.packet(flags, payload, **more))
        if "seq" not in more:
            self.seq += len(payload) + bool(flags & SYN) + bool(flags & FIN)

    def take(self, got):
        self.got.append(got)
        if got.flags & RST:
            self.is_reset = True
        elif got.flags & SYN and not self.open:
            self.ack, self.open = (got.seq + 1) % WRAP, True
        elif got.seq == self.ack and (got.payload or got.flags & FIN) and (self.window or got.flags & FIN):
            self.data += got.payload
            self.ack = (self.ack + len(got.payload) + (got.flags & FIN)) % WRAP
            self.is_closed = self.is_closed or bool(got.flags & FIN)
            if self.acks:
                self.send(ACK)

    def connect(self):
        """The handshake; whether it worked. What is left of a connection before this one is reset, as by any host."""
        end = time.monotonic() + HANDSHAKE_S
        while not self.open and time.monotonic() < end:
            self.send(SYN, seq=self.first, ack=0, options=self.options)
            self.seq = (self.first + 1) % WRAP
            again = time.monotonic() + SYN_AGAIN_S
            while not self.open and not self.got and time.monotonic() < again:
                self.link.poll(0.1)
            if self.got and not self.open:
                self.send(RST, seq=self.got[-1].ack)
                self.got.clear()
        if self.open:
            self.send(ACK)
        return self.open

    def speak(self, *frames, settings=()):
        """HTTP/2's preface, and these frames."""
        self.send(ACK | PSH, h2.PREFACE + h2.settings(*settings) + b"".join(frames))


def peers(link, a, n, **how):
    """n peers, connected; each from an address and a port that this attack has not used."""
    made = []
    for number in range(a.connections, a.connections + n):
        address = NET.format(1, 1 + number // 200 % 250)
        made.append(Peer(link, address, FIRST_PORT + number % 200 + 200 * a.shift, **how))
        made[-1].seq = made[-1].first = a.random.getrandbits(32)
    for peer in made:
        if not peer.connect():
            raise OSError(f"no connection from {peer.address}:{peer.port}")
    a.connections, a.most = a.connections + n, max(a.most, n)
    return made
