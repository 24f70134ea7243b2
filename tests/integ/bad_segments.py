# SPDX-License-Identifier: Apache-2.0
"""bad_segments.py FROM TO COUNT: TCP segments to port 8080 whose checksum is wrong."""

import socket
import struct
import sys


def main(source, target, count):
    # The kernel writes length and checksum of the IP header; the rest stays as it is.
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_TCP, 0,
                     socket.inet_aton(source), socket.inet_aton(target))
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for n in range(int(count)):
            # A right checksum would say the same of two of them once in 65536 times.
            segment = struct.pack("!HHIIBBHHH", 2000 + n, 8080, 1, 0, 0x50, 0x02, 1000, 0xbad, 0)
            raw.sendto(ip + segment, (target, 0))


if __name__ == "__main__":
    main(*sys.argv[1:])
