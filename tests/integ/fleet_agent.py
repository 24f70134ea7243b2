#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) with many HTTP/2 connections to one address, each known by its own port.

usage: fleet_agent.py SOCKET

`open`: n connections to ip:port, each with an answer; tells their ports. `ask`: one request on each of them; tells
{port: the status, or "lost"}, and forgets those that are lost. `serves`: new connections until one has an answer;
tells after how many seconds.
"""

import contextlib
import socket
import sys
import time

import agent
import h2_peer

PATH = "/mark"
TIMEOUT_S = 10
SOON_S = 1  # for one of many tries; a SYN that is lost is repeated only then
CONNECTIONS = {}  # port: (socket, h2's connection)


def connect(ip, port, timeout_s=TIMEOUT_S):
    sock = socket.create_connection((ip, port), timeout_s)
    sock.settimeout(TIMEOUT_S)
    return sock, h2_peer.session(sock, is_client=True)


def request(sock, connection):
    try:
        return h2_peer.ask(sock, connection, "fleet", PATH).get(":status")
    except OSError:
        return "lost"


def open_some(ip, port, n):
    ports = []
    for _ in range(n):
        sock, connection = connect(ip, port)
        status = request(sock, connection)
        if status != "200":
            raise ValueError(f"a new connection's request: {status}")
        ports.append(sock.getsockname()[1])
        CONNECTIONS[ports[-1]] = sock, connection
    return ports


def ask_all():
    answers = {port: request(*pair) for port, pair in CONNECTIONS.items()}
    for port, status in answers.items():
        if status != "200":
            CONNECTIONS.pop(port)[0].close()
    return answers


def until_served(ip, port, timeout_s):
    started = time.monotonic()
    while time.monotonic() - started < timeout_s:
        with contextlib.suppress(OSError):
            sock, connection = connect(ip, port, SOON_S)
            with sock:
                if request(sock, connection) == "200":
                    return time.monotonic() - started
        time.sleep(0.01)
    raise TimeoutError(f"nothing serves within {timeout_s} s")


def run(asked):
    if asked["op"] == "open":
        return open_some(asked["ip"], asked["port"], asked["n"])
    if asked["op"] == "ask":
        return ask_all()
    return until_served(asked["ip"], asked["port"], asked["timeout_s"])


if __name__ == "__main__":
    agent.serve(sys.argv[1], run)
