# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy for CONNECT that does what a file says, and prints what it is asked.

usage: connect_agent.py ADDRESS PORT FILE

The file, read for each connection, has one word: open, slow (the answer byte by byte), 407, endless (fields), garbage,
close, silence. Or it has {first, port, answers} as JSON: who asks for port first + N gets the answer N, whatever it
means, and then the way to `port`. An answer is [text, behind]; with the latter it has the first bytes from there behind
it, in one piece, if some come by themselves.
"""

import json
import pathlib
import socket
import sys
import threading
import time

OK = b"HTTP/1.1 200 Connection established\r\nVia: agent\r\nContent-Length: 7\r\n\r\n"  # the length means nothing
LATE_S = 0.002  # between two bytes
FIRST_BYTES_S = 1
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


def in_pieces(sock, answer):
    for byte in answer:
        sock.sendall(bytes([byte]))
        time.sleep(LATE_S)


def first_of(backend):
    try:
        first = backend.recv(65536)
    except TimeoutError:
        first = b""
    print(f"{len(first)} bytes behind the answer", flush=True)
    return first


def tunnel(sock, target, answer=OK, slow=False, behind=False):
    host, port = target
    with socket.create_connection((host, port), FIRST_BYTES_S) as backend:
        if behind:
            answer += first_of(backend)
        backend.settimeout(None)
        if slow:
            in_pieces(sock, answer)
        else:
            sock.sendall(answer)
        thread = threading.Thread(target=pipe, args=(sock, backend), daemon=True)
        thread.start()
        pipe(backend, sock)
        thread.join(5)


def endless(sock):
    sock.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(1000):
        sock.sendall(f"X-{number}: {'a' * 100}\r\n".encode())


def by_port(sock, target, table):
    """Answers as the table says."""
    text, behind = table["answers"][target[1] - table["first"]]
    tunnel(sock, (target[0], table["port"]), text.encode("latin-1"), behind=behind)


def serve(sock, path):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    mode = path.read_text().strip()
    try:
        with sock:
            head = head_of(sock)
            if not head:
                return
            print(sock.getpeername()[0], repr(head), flush=True)
            host, port = head.split(" ")[1].rsplit(":", 1)
            target = host.strip("[]"), int(port)
            if mode in REFUSALS:
                sock.sendall(REFUSALS[mode])
            elif mode == "endless":
                endless(sock)
            elif mode == "silence":
                sock.recv(1)
            elif mode.startswith("{"):
                by_port(sock, target, json.loads(mode))
            else:
                tunnel(sock, target, slow=mode == "slow")
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
