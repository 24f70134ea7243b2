# SPDX-License-Identifier: Apache-2.0
"""ra_agent.py INTERFACE: an IPv6 router that advertises itself on that link twice a second (RFC 4861 4.2)."""

import socket
import struct
import sys
import time

LIFETIME_S = 1800
ADVERTISEMENT = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, LIFETIME_S, 0, 0)  # the kernel makes the checksum


def main(interface):
    index = socket.if_nametoindex(interface)
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        while True:
            try:
                sock.sendto(ADVERTISEMENT, ("ff02::1", 0, 0, index))
            except OSError:
                pass  # no address of the link yet
            time.sleep(0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
