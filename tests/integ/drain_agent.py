#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) whose connections are there when the server goes, and which never ends its side by itself.

usage: drain_agent.py SOCKET

`open`: so many connections to ip:port of each kind: `idle` (one call, and no more), `busy` (a stream under way that
would go on for a minute), `deaf` (the same, of which it reads nothing). Answers when each has what it is to have.
`ends`: waits for the ends of all but the deaf ones, and tells [kind, grpc-status or reset of the last call, how the
connection ended] of each.
"""

import json
import socket
import struct
import sys
import threading
import time

import agent
import h2_agent
import h2_peer

CALL = ((":method", "POST"), (":scheme", "http"), (":authority", "web.example"), ("content-type", "application/grpc"),
        ("te", "trailers"))
LAST_S = 60
LITTLE = 4096  # bytes of the kernel's that the deaf ones have
THREADS, ENDS, KEPT = [], [], []


def expand(chunks, size, pause_s):
    """(fields, body) of a call that is answered so."""
    message = json.dumps({"chunks": chunks, "bytes": size, "pause_s": pause_s}).encode()
    return [*CALL, (":path", "/shunt.test.Echo/Expand")], struct.pack(">BI", 0, len(message)) + message


def in_order(fields):
    """Pseudo-headers first."""
    return sorted(fields, key=lambda field: not field[0].startswith(":"))


def asked(session, call):
    fields, body = call
    return session.run([{"fields": in_order(fields), "body": body.decode("latin-1")}], LAST_S)[0]


def end_of(sock):
    sock.settimeout(LAST_S)
    try:
        while sock.recv(65536):
            pass
        return "fin"
    except ConnectionResetError:
        return "reset"
    except TimeoutError:
        return "none"


def open_one(kind, ip, port):
    if kind == "deaf":
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE)
        sock.connect((ip, port))
        connection, (fields, body) = h2_peer.session(sock, is_client=True), expand(600, 1000, 0)
        connection.send_headers(1, in_order(fields))
        connection.send_data(1, body, end_stream=True)
        sock.sendall(connection.data_to_send())
        KEPT.append(sock)
        return
    session = h2_agent.Session(ip, port)
    KEPT.append(session)
    asked(session, expand(1, 10, 0))

    def stay():
        answer = asked(session, expand(600, 10, 0.1)) if kind == "busy" else None
        told = answer and (dict(answer["trailers"]).get("grpc-status") or f"reset {answer['reset']}")
        ENDS.append([kind, told, "lost" if session.lost else end_of(session.socket)])
    THREADS.append(threading.Thread(target=stay, daemon=True))
    THREADS[-1].start()


def run(request):
    if request["op"] == "open":
        for kind, n in request["kinds"].items():
            for _ in range(n):
                open_one(kind, request["ip"], request["port"])
        time.sleep(1)  # the streams are under way
        return None
    for thread in THREADS:
        thread.join()
    return sorted(ENDS, key=str)


if __name__ == "__main__":
    agent.serve(sys.argv[1], run)
