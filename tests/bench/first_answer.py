# SPDX-License-Identifier: Apache-2.0
"""first_answer.py IP PORT PATH: asks until somebody answers 200, and prints when that was, in nanoseconds of
the monotonic clock. Each try is a connection of its own that lasts milliseconds, so that a server which
comes up is seen at once."""

import socket
import sys
import time

CONNECT_TIMEOUT_S = 0.01
ANSWER_TIMEOUT_S = 0.1
PAUSE_S = 0.001
PATIENCE_S = 60
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # and empty SETTINGS
HEADERS, END_STREAM_AND_HEADERS = 1, 5
STATUS_200 = 0x88  # RFC 7541, appendix A


def request(authority, path):
    """GET on stream 1 (RFC 7541 6.2.2: literals without indexing)."""
    block = bytes((0x82, 0x86, 0x01, len(authority))) + authority.encode() + bytes((0x04, len(path))) + path.encode()
    return PREFACE + len(block).to_bytes(3, "big") + bytes((HEADERS, END_STREAM_AND_HEADERS, 0, 0, 0, 1)) + block


def read(connection, n):
    data = b""
    while len(data) < n:
        part = connection.recv(n - len(data))
        if not part:
            raise ConnectionError
        data += part
    return data


def is_answered(ip, port, asked):
    with socket.create_connection((ip, port), timeout=CONNECT_TIMEOUT_S) as connection:
        connection.settimeout(ANSWER_TIMEOUT_S)
        connection.sendall(asked)
        while True:
            head = read(connection, 9)
            payload = read(connection, int.from_bytes(head[:3], "big"))
            if head[3] == HEADERS:
                # Behind what changes the size of the dynamic table (RFC 7541 6.3).
                return next(byte for byte in payload if byte & 0xe0 != 0x20) == STATUS_200


def main():
    ip, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    asked = request(f"{ip}:{port}", path)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if is_answered(ip, port, asked):
                print(time.monotonic_ns())
                return
        except OSError:
            pass
        time.sleep(PAUSE_S)
    sys.exit(f"no answer from {ip}:{port}{path}")


if __name__ == "__main__":
    main()
