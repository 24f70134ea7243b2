#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Connects to sockets and ports again and again until a file is there, and prints as JSON how often, and what went
wrong. Runs in the namespace of the daemon.

usage: knock_agent.py STOP_FILE ASKED SEEN PORT...

ASKED, a stats socket, has to answer a command. SEEN is a socket of another type: that somebody listens there is seen by
the error, and nobody hears of it. Ports are those of 127.0.0.1.
"""

import collections
import errno
import json
import pathlib
import socket
import sys
import time

TIMEOUT_S = 5
PAUSE_S = 0.001


def ask(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(TIMEOUT_S)
        s.connect(path)
        s.sendall(b"show info\n")
        answer = b""
        while not answer.endswith(b"\n\n"):
            part = s.recv(65536)
            if not part:
                raise OSError("no answer")
            answer += part


def see(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        try:
            s.connect(path)
        except OSError as error:
            if error.errno != errno.EPROTOTYPE:
                raise


def dial(port):
    socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S).close()


def main():
    stop, asked, seen, *ports = sys.argv[1:]
    rounds, resets, failed = 0, 0, collections.Counter()
    knocks = [(ask, asked), (see, seen), *((dial, int(port)) for port in ports)]
    while not pathlib.Path(stop).exists():
        for knock, where in knocks:
            try:
                knock(where)
            except ConnectionResetError as error:
                if knock is dial:  # it was in the line of a listener that closed
                    resets += 1
                else:
                    failed[f"{where}: {error}"] += 1
            except OSError as error:
                failed[f"{where}: {error}"] += 1
        rounds += 1
        time.sleep(PAUSE_S)
    print(json.dumps({"rounds": rounds, "resets": resets, "failed": failed}))


main()
