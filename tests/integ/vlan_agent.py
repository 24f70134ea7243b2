# SPDX-License-Identifier: Apache-2.0
"""vlan_agent.py TCI [STRAYS [FAR NEAR]]: a switch between the interfaces FAR (`far`), whose frames have no tag, and
NEAR (`near`), whose frames have that one (802.1Q). First it sends STRAYS frames without a tag to NEAR, and as many of
VLAN 8."""

import selectors
import socket
import struct
import sys

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_AUXDATA = 8  # linux/if_packet.h: the kernel takes tags out, and tells of them here
TP_STATUS_VLAN_VALID = 1 << 4
AUXDATA = struct.Struct("=IIIHHHH")
TAG = struct.Struct("!HH")
STRAY = b"\xff" * 6 + b"\x02\0\0\0\0\x08"


def open_interface(name):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.bind((name, ETH_P_ALL))
    sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    return sock


def receive(sock):
    """A frame without its tag, and that tag or None; None, None of one that this machine sent."""
    frame, notes, _, address = sock.recvmsg(2048, socket.CMSG_SPACE(AUXDATA.size))
    if address[2] == socket.PACKET_OUTGOING:
        return None, None
    for level, kind, data in notes:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, *_, tci, _ = AUXDATA.unpack(data[:AUXDATA.size])
            return frame, tci if status & TP_STATUS_VLAN_VALID else None
    return frame, None


def tagged(frame, tci):
    return frame[:12] + TAG.pack(0x8100, tci) + frame[12:]


def main(tci, strays=0, *names):
    tci = int(tci)
    far, near = map(open_interface, names or ("far", "near"))
    for _ in range(int(strays)):
        stray = STRAY + b"\x08\x00" + bytes(46)
        near.send(stray)
        near.send(tagged(stray, 8))
    selector = selectors.DefaultSelector()
    for sock in (far, near):
        selector.register(sock, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            frame, tag = receive(key.fileobj)
            if frame and key.fileobj is far:
                near.send(tagged(frame, tci))
            elif frame and (tag == tci or tci & 0xfff == 0):
                far.send(frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
