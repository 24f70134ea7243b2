#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) with many HTTP/2 connections to one address, each known by its own port.

usage: fleet_agent.py SOCKET

`open`: n connections to ip:port, each with an answer; tells their ports. `ask`: one request on each of them; tells
{port: the status, or "lost"}, and forgets those that are lost. `knock`: for so many seconds a new connection every
PACE_S; tells [when it began, when it was over, what became of it] of each, in seconds of the monotonic clock: "served",
if it was SOON, "cut" when it was open, or "refused".
"""

import socket
import sys
import threading
import time

import agent
import h2_peer

PATH = "/mark"
TIMEOUT_S = 10
SOON_S = 0.5  # a SYN that is lost is repeated after a second
PACE_S = 0.01
CONNECTIONS = {}  # port: (socket, h2's connection)


def request(sock, connection):
    try:
        return h2_peer.ask(sock, connection, "fleet", PATH).get(":status")
    except OSError:
        return "lost"


def open_some(ip, port, n):
    ports = []
    for _ in range(n):
        sock = socket.create_connection((ip, port), TIMEOUT_S)
        connection = h2_peer.session(sock, is_client=True)
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


def try_once(ip, port, tries):
    began, became = time.monotonic(), "refused"
    try:
        with socket.create_connection((ip, port), SOON_S) as sock:
            became = "cut"
            if request(sock, h2_peer.session(sock, is_client=True)) == "200":
                became = "served"
    except OSError:
        pass
    finally:
        tries.append([began, time.monotonic(), became])


def knock(ip, port, seconds):
    tries, threads = [], []
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        threads.append(threading.Thread(target=try_once, args=(ip, port, tries)))
        threads[-1].start()
        time.sleep(max(0.0, started + len(threads) * PACE_S - time.monotonic()))
    for thread in threads:
        thread.join()
    return tries


def run(asked):
    if asked["op"] == "open":
        return open_some(asked["ip"], asked["port"], asked["n"])
    if asked["op"] == "ask":
        return ask_all()
    return knock(asked["ip"], asked["port"], asked["seconds"])


if __name__ == "__main__":
    agent.serve(sys.argv[1], run)
