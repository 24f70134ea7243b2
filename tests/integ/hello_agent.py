# SPDX-License-Identifier: Apache-2.0
"""Clients that say their ClientHello slowly, or never all of it.

    hello_agent.py trickle ADDRESS PORT CA NAME    a request by HTTP/1.1; prints the length of the answer's body
    hello_agent.py late ADDRESS PORT CA NAME FILE  prints "connected", says nothing before the file is there, then as
                                                   trickle
    hello_agent.py half ADDRESS PORT               three hellos that never end; waits until all are hung up on
    hello_agent.py ask ADDRESS PORT CA HELLOS      prints who answers each of a JSON list of [name, protocols], or null
                                                   for a request in plain text: the certificate's subject, or the length
                                                   of the answer's body; "" = nobody"""

import contextlib
import json
import os
import socket
import ssl
import sys
import time

PAUSE_S, TIMEOUT_S = 0.1, 20
HALF = b"\x16\3\1\2\0\1\0\1\xfc" + bytes(300)  # of a record of 512 bytes
# In records of a byte, whose heads alone are beyond the bound.
BEYOND = b"".join(b"\x16\3\1\0\1" + bytes([byte]) for byte in b"\1\0\x3f\xff" + bytes(3000))


def connect(address, port):
    return socket.create_connection((address, int(port)), TIMEOUT_S)


class Tls:
    """TLS over a link whose first bytes go in four pieces."""

    def __init__(self, link, authority, name):
        context = ssl.create_default_context(cafile=authority)
        context.set_alpn_protocols(["http/1.1"])
        self.link = link
        self.coming, self.going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.coming, self.going, server_hostname=name)
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        hello = self.going.read()
        for piece in (hello[:3], hello[3:100], hello[100:-1], hello[-1:]):
            link.sendall(piece)
            time.sleep(PAUSE_S)
        self.go_on(self.tls.do_handshake)

    def go_on(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.link.sendall(self.going.read())
                self.coming.write(self.link.recv(65536))

    def ask(self, name):
        """The answer, until the other end closes."""
        self.tls.write(f"GET /mark HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        self.link.sendall(self.going.read())
        got = b""
        with contextlib.suppress(ssl.SSLZeroReturnError):
            while more := self.go_on(lambda: self.tls.read(65536)):
                got += more
        return got


def trickle(address, port, authority, name):
    print(len(Tls(connect(address, port), authority, name).ask(name).split(b"\r\n\r\n", 1)[1]))


def late(address, port, authority, name, file):
    link = connect(address, port)
    print("connected", flush=True)
    while not os.path.exists(file):
        time.sleep(PAUSE_S / 10)
    print(len(Tls(link, authority, name).ask(name).split(b"\r\n\r\n", 1)[1]))


def half(address, port):
    links = [connect(address, port) for _ in range(3)]
    links[0].sendall(HALF)
    links[1].sendall(BEYOND)
    for link in links:
        with contextlib.suppress(ConnectionResetError):
            assert link.recv(1) == b""


def subject(link, authority, name, protocols):
    context = ssl.create_default_context(cafile=authority)
    context.check_hostname = False
    if protocols:
        context.set_alpn_protocols(protocols)
    try:
        with context.wrap_socket(link, server_hostname=name or None) as tls:
            return dict(pair for (pair,) in tls.getpeercert()["subject"])["commonName"]
    except (ssl.SSLError, OSError):
        return ""


def length(link):
    link.sendall(b"GET /mark HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n")
    got = b""
    with contextlib.suppress(OSError):
        while more := link.recv(65536):
            got += more
    return str(len(got.split(b"\r\n\r\n", 1)[1])) if got.startswith(b"HTTP/1.1 200") else ""


def ask(address, port, authority, hellos):
    answers = []
    for hello in json.loads(hellos):
        with connect(address, port) as link:
            answers.append(length(link) if hello is None else subject(link, authority, *hello))
    print(json.dumps(answers))


if __name__ == "__main__":
    {"trickle": trickle, "late": late, "half": half, "ask": ask}[sys.argv[1]](*sys.argv[2:])
