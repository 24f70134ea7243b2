# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 by hand (RFC 9113, RFC 7541): frames that no library would send."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
PRIORITY_UPDATE, RESERVED = 0x10, 0x0b  # RFC 9218 7.1; one of those that RFC 9113 5.5 has ignored
TABLE_SIZE, ENABLE_PUSH, MAX_STREAMS, INITIAL_WINDOW, MAX_FRAME, MAX_HEADER_LIST = range(1, 7)
NO_ERROR, CANCEL = 0, 8
DEFAULT_WINDOW, MAX_WINDOW = 65535, 2**31 - 1
FRAME_HEADER = 9


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """length: what the header says, if it is to lie."""
    n = len(payload) if length is None else length
    return struct.pack("!BHBBI", n >> 16, n & 0xffff, kind, flags, stream) + payload


def settings(*pairs):
    """pairs: (identifier, value)"""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack("!HI", *pair) for pair in pairs))


def settings_of(payload):
    return dict(struct.iter_unpack("!HI", payload))


def rst(stream, code=CANCEL):
    return frame(RST, 0, stream, struct.pack("!I", code))


def window(stream, increment):
    return frame(WINDOW, 0, stream, struct.pack("!I", increment))


def ping(opaque=bytes(8)):
    return frame(PING, 0, 0, opaque)


def goaway(last=0, code=NO_ERROR):
    return frame(GOAWAY, 0, 0, struct.pack("!II", last, code))


def data(stream, payload=b"", end=False):
    return frame(DATA, END_STREAM if end else 0, stream, payload)


def headers(stream, block, end=True, end_headers=True):
    return frame(HEADERS, (END_STREAM if end else 0) | (END_HEADERS if end_headers else 0), stream, block)


def continuation(stream, block=b"", end_headers=False):
    return frame(CONTINUATION, END_HEADERS if end_headers else 0, stream, block)


def integer(value, bits, first=0):
    """RFC 7541 5.1; first: what stands in front of the prefix."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = bytearray([first | most]), value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def text(value):
    value = value.encode("latin-1") if isinstance(value, str) else value
    return integer(len(value), 7) + value


def indexed(index):
    return integer(index, 7, 0x80)


def literal(name, value, first=0x00):
    """0x00: not indexed, 0x10: never indexed, 0x40: enters the table. A number for a name is its index."""
    if isinstance(name, int):
        return integer(name, 6 if first == 0x40 else 4, first) + text(value)
    return bytes([first]) + text(name) + text(value)


def fields(*pairs):
    return b"".join(literal(name, value) for name, value in pairs)


def request(path="/mark", *more, method="GET", authority="victim.test"):
    """A header block, with more (name, value) fields behind. Static entries: 2 GET, 3 POST, 6 http."""
    first = indexed(2 if method == "GET" else 3) if method in ("GET", "POST") else literal(":method", method)
    return first + indexed(6) + literal(4, path) + literal(1, authority) + fields(*more)


def grpc(path, *more):
    """The header block of a gRPC call."""
    return request(path, ("content-type", "application/grpc"), ("te", "trailers"), *more, method="POST")


def frames_of(buffer):
    """[(kind, flags, stream, payload)] of the whole frames in a bytearray, which keeps the rest."""
    found, at, size = [], 0, len(buffer)
    while size - at >= FRAME_HEADER:
        n = int.from_bytes(buffer[at:at + 3], "big")
        if size - at < FRAME_HEADER + n:
            break
        kind, flags, stream = buffer[at + 3], buffer[at + 4], int.from_bytes(buffer[at + 5:at + 9], "big")
        found.append((kind, flags, stream & MAX_WINDOW, bytes(buffer[at + 9:at + 9 + n])))
        at += FRAME_HEADER + n
    del buffer[:at]
    return found
