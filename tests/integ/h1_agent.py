# SPDX-License-Identifier: Apache-2.0
"""A client of HTTP/1.1 on raw sockets. usage: h1_agent.py IP PORT < JSON

Reads a list of {"pieces": [hex, …], "answers": N, "closed": bool} and, one after the other, sends the pieces on
a connection of its own until N final answers have come and, if it says so, the end of the connection. Prints a list of
{"statuses": […], "heads": […], "bodies": […], "closed": bool, "whole": bool}; whole: nothing is left behind the last.
"""

import json
import socket
import sys


def take(data, is_last):
    """(head, body, rest) of the first answer in data; None = it is not complete."""
    head, blank, rest = data.partition(b"\r\n\r\n")
    if not blank:
        return None
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    status = int(head.split(b" ")[1])
    if status < 200 or status in (204, 304):
        return head, b"", rest
    if b"content-length" in fields:
        n = int(fields[b"content-length"])
        return (head, rest[:n], rest[n:]) if len(rest) >= n else None
    if fields.get(b"transfer-encoding") != b"chunked":
        return (head, rest, b"") if is_last else None
    body = b""
    while True:
        line, end, rest = rest.partition(b"\r\n")
        if not end:
            return None
        n = int(line, 16)
        if len(rest) < n + 2:
            return None
        body, rest = body + rest[:n], rest[n + 2:]
        if n == 0:
            return head, body, rest


def ask(address, row):
    sock = socket.create_connection(address, 10)
    sock.settimeout(10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data, answers, closed = b"", [], False
    try:
        for piece in row["pieces"]:
            sock.sendall(bytes.fromhex(piece))
    except OSError:
        pass
    try:
        while not closed and (len(answers) < row["answers"] or row["closed"]):
            more = sock.recv(65536)
            closed, data = not more, data + more
            while found := take(data, closed) if data else None:
                head, body, data = found
                if not head.startswith(b"HTTP/1.1 1"):
                    answers.append((head.decode(), body.decode("latin-1")))
    except TimeoutError:
        pass
    except OSError:
        closed = True
    sock.close()
    return {"statuses": [int(head.split(" ")[1]) for head, _ in answers], "heads": [head for head, _ in answers],
            "bodies": [body for _, body in answers], "closed": closed, "whole": not data}


if __name__ == "__main__":
    print(json.dumps([ask((sys.argv[1], int(sys.argv[2])), row) for row in json.load(sys.stdin)]))
