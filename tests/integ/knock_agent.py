#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Asks at sockets and ports again and again until a file is there, but so often at least, and prints as JSON how often,
and what went wrong: whoever connects is answered, and nobody is refused or reset. Runs in the namespace of the daemon.

usage: knock_agent.py STOP_FILE LEAST ASKED SEEN SCRAPED GREETED

ASKED, a stats socket, has to answer a command. SEEN is a socket of another type: that somebody listens there is seen by
the error, and nobody hears of it. SCRAPED is the metrics' port, which has to answer for metrics and for the page, and
to say that it is ready, on new connections and on one that is kept for as long as the server keeps it. GREETED, a port
of HTTP/2, has to say its settings. Ports are those of 127.0.0.1.
"""

import collections
import errno
import http.client
import json
import pathlib
import socket
import sys
import threading
import time

TIMEOUT_S = 30
PAUSE_S = 0.005
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
SETTINGS = 4
ENDS = {"/metrics": b"\n", "/": b"</html>\n", "/ready": b"ready\n"}


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


def greet(port):
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as s:
        s.sendall(PREFACE)
        head = s.recv(9, socket.MSG_WAITALL)
        if len(head) < 9 or head[3] != SETTINGS:
            raise OSError(f"no settings, but {head}")


class Scraper:
    """GET on one connection, which the client opens anew where the server has said that it closes it."""

    def __init__(self, port, path, is_kept):
        self.port, self.path, self.is_kept = port, path, is_kept
        self.connection = None

    def scrape(self):
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            self.connection.request("GET", self.path)
            answer = self.connection.getresponse()
            body = answer.read()
        except BaseException:
            self.connection.close()
            self.connection = None
            raise
        if not self.is_kept:
            self.connection.close()
        if answer.status != 200 or not body.endswith(ENDS[self.path]):
            raise OSError(f"{answer.status} {body[-100:]}")


class Knocks:
    """One kind, each in a thread of its own."""

    def __init__(self, name, stop, least, knock, where):
        self.name, self.stop, self.least, self.knock, self.where = name, stop, least, knock, where
        self.rounds, self.failed = 0, collections.Counter()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.rounds < self.least or not self.stop.exists():
            try:
                self.knock(self.where)
            except (OSError, http.client.HTTPException) as error:
                self.failed[repr(error)] += 1
            self.rounds += 1
            time.sleep(PAUSE_S)


def main():
    stop, least, asked, seen, scraped, greeted = sys.argv[1:]
    knocks = [("stats", ask, asked), ("takeover", see, seen), ("status", greet, int(greeted))]
    for path in ENDS:
        knocks += [(f"{path} new", Scraper.scrape, Scraper(int(scraped), path, False)),
                   (f"{path} kept", Scraper.scrape, Scraper(int(scraped), path, True))]
    kinds = [Knocks(name, pathlib.Path(stop), int(least), knock, where) for name, knock, where in knocks]
    for kind in kinds:
        kind.thread.join()
    print(json.dumps({"rounds": {kind.name: kind.rounds for kind in kinds},
                      "failed": {kind.name: kind.failed for kind in kinds if kind.failed}}))


main()
