# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy for CONNECT that does what a file says, and prints what it is asked.

usage: connect_agent.py ADDRESS PORT FILE

The file, read for each connection, has one word: open, slow (the answer byte by byte), 407, endless (fields), garbage,
close, silence.
"""

import pathlib
import socket
import sys
import threading
import time

OK = b"HTTP/1.1 200 Connection established\r\nVia: agent\r\nContent-Length: 7\r\n\r\n"  # the length means nothing
LATE_S = 0.002  # between two bytes
REFUSALS = {
    "407": b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
    "garbage": b"\x15\x03\x01\x00\x02\x02\x50",
    "close": b"",
}


def head_of(sock):
    head = b""
    while b"\r\n\r\n" not in head:
        got = sock.recv(4096)
        if not got:
            return None
        head += got
    return head.decode()


def pipe(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def tunnel(sock, target, mode):
    host, port = target.rsplit(":", 1)
    with socket.create_connection((host.strip("[]"), int(port)), 5) as backend:
        backend.settimeout(None)
        if mode == "slow":
            for byte in OK:
                sock.sendall(bytes([byte]))
                time.sleep(LATE_S)
        else:
            sock.sendall(OK)
        thread = threading.Thread(target=pipe, args=(sock, backend), daemon=True)
        thread.start()
        pipe(backend, sock)
        thread.join(5)


def endless(sock):
    sock.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(1000):
        sock.sendall(f"X-{number}: {'a' * 100}\r\n".encode())


def serve(sock, path):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    mode = path.read_text().strip()
    try:
        with sock:
            head = head_of(sock)
            if not head:
                return
            print(repr(head), flush=True)
            if mode in REFUSALS:
                sock.sendall(REFUSALS[mode])
            elif mode == "endless":
                endless(sock)
            elif mode == "silence":
                sock.recv(1)
            else:
                tunnel(sock, head.split(" ")[1], mode)
    except OSError:
        pass


def main():
    address, port, path = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family) as listener:
        print("listens", flush=True)
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=serve, args=(sock, path), daemon=True).start()


if __name__ == "__main__":
    main()
