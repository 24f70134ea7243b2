#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that makes HTTP/2 requests with any fields at all, many at once on one
connection, and tells every answer.

usage: h2_agent.py SOCKET

Asked for {ip, port, requests, timeout, source, tls}; a request is {fields, body, trailers, open, alone}: all
fields in order, pseudo-headers too; `open` leaves the request without an end, `alone` gives it a
connection of its own, for what a server may take amiss. `source` is the address and the port that
connections are from; with `tls`, {ca, own, name}, they have TLS: the file of the CAs, [certificate, key]
or none, and the name that is asked for or none. An answer is {status, fields, trailers, body, reset,
seconds}; what has no end after `timeout` has "reset": "none".
"""

import contextlib
import json
import socket
import ssl
import struct
import sys
import time

import h2.config
import h2.connection
import h2.events
import h2.settings

import agent

FRAME_HEADER, GOAWAY = 9, 7
BATCH = 90  # streams at once; a peer that allows fewer than 100 is none of ours
CONNECTIONS = {}


def connected(ip, port, source):
    if not source:
        return socket.create_connection((ip, port), 10)
    made = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # several may be from one port
    made.settimeout(10)
    made.bind(source)
    made.connect((ip, port))
    return made


def secured(sock, ca, own=None, name=None):
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    if own:
        context.load_cert_chain(*own)
    return context.wrap_socket(sock, server_hostname=name)


class Session:
    """One connection; run() gives every request of a batch its answer. tls: as JSON."""

    def __init__(self, ip, port, source=None, tls=None):
        self.socket = connected(ip, port, source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = secured(self.socket, **json.loads(tls))
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            header_encoding="latin-1", validate_outbound_headers=False,
            normalize_outbound_headers=False, validate_inbound_headers=False))
        self.h2.initiate_connection()
        self.h2.update_settings({h2.settings.SettingCodes.ENABLE_PUSH: 0})
        self.gone = False  # takes no new stream
        self.lost = False
        self.unread = b""
        self._flush()

    def abort(self):
        """Ends it at once, and leaves no TIME_WAIT."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _flush(self):
        data = self.h2.data_to_send()
        if data:
            with contextlib.suppress(ConnectionError):  # reading tells of it, too
                self.socket.sendall(data)

    def _open(self, request):
        stream = self.h2.get_next_available_stream_id()
        body, trailers = request.get("body", ""), request.get("trailers")
        keep = request.get("open", False)
        fields = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in request["fields"]]
        self.h2.send_headers(stream, fields, end_stream=not (body or trailers or keep))
        if body:
            self.h2.send_data(stream, body.encode("latin-1"), end_stream=not (trailers or keep))
        if trailers:
            self.h2.send_headers(stream, trailers, end_stream=True)
        return stream

    def run(self, requests, timeout):
        answers = {}
        started = time.monotonic()
        for request in requests:
            answers[self._open(request)] = {"status": None, "fields": [], "trailers": [],
                                            "body": "", "reset": "none"}
        self._flush()
        pending = set(answers)
        while pending and not self.lost:
            left = started + timeout - time.monotonic()
            if left <= 0:
                break
            self._receive(left, answers, pending, started)
        if not self.lost:
            for stream in pending:  # what never ended is called off, and stays without an end
                self.h2.reset_stream(stream, 8)
            self._flush()
        return list(answers.values())

    def _receive(self, left, answers, pending, started):
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.lost = self.gone = True
            self._refuse(answers, pending, "connection lost")
            return
        for event in self.h2.receive_data(self._without_goaway(data, answers, pending)):
            self._note(event, answers, pending, started)
        self._flush()

    def _without_goaway(self, data, answers, pending):
        """The whole frames among what has come, but GOAWAY: hyper-h2 would take nothing after it,
        though the streams that it spares go on."""
        self.unread += data
        kept = b""
        while len(self.unread) >= FRAME_HEADER:
            size = FRAME_HEADER + int.from_bytes(self.unread[:3], "big")
            if len(self.unread) < size:
                break
            frame, self.unread = self.unread[:size], self.unread[size:]
            if frame[3] != GOAWAY:
                kept += frame
                continue
            self.gone = True
            last = int.from_bytes(frame[9:13], "big")
            code = int.from_bytes(frame[13:17], "big")
            refused = {stream for stream in pending if stream > last}
            self._refuse(answers, refused, f"goaway {code}")
            pending -= refused
        return kept

    @staticmethod
    def _refuse(answers, streams, why):
        for stream in streams:
            answers[stream]["reset"] = why

    def _note(self, event, answers, pending, started):
        answer = answers.get(getattr(event, "stream_id", None))
        if answer is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            answer["fields"] = [list(pair) for pair in event.headers]
            answer["status"] = int(dict(event.headers)[":status"])
        elif isinstance(event, h2.events.TrailersReceived):
            answer["trailers"] = [list(pair) for pair in event.headers]
        elif isinstance(event, h2.events.DataReceived):
            answer["body"] += event.data.decode("latin-1")
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
            # NO_ERROR after a complete answer only says that no more of the request is wanted.
            ended = isinstance(event, h2.events.StreamEnded)
            if event.stream_id in pending:
                answer["reset"] = None if ended else str(int(event.error_code))
                answer["seconds"] = time.monotonic() - started
                pending.discard(event.stream_id)


def shared_session(key):
    if key in CONNECTIONS and CONNECTIONS[key].gone:
        CONNECTIONS.pop(key).abort()  # else its port, if it was chosen, is taken
    if key not in CONNECTIONS:
        CONNECTIONS[key] = Session(*key)
    return CONNECTIONS[key]


def run_alone(key, request, timeout):
    session = Session(*key)
    try:
        return session.run([request], timeout)[0]
    finally:
        session.socket.close()


def run(asked):
    source = tuple(asked["source"]) if "source" in asked else None
    tls = json.dumps(asked["tls"]) if "tls" in asked else None
    key, timeout = (asked["ip"], asked["port"], source, tls), asked.get("timeout", 20)
    requests = asked["requests"]
    answers = [run_alone(key, r, timeout) if r.get("alone") else None for r in requests]
    together = [n for n, r in enumerate(requests) if not r.get("alone")]
    for first in range(0, len(together), BATCH):
        numbers = together[first:first + BATCH]
        batch = shared_session(key).run([requests[n] for n in numbers], timeout)
        for number, answer in zip(numbers, batch):
            answers[number] = answer
    return answers


if __name__ == "__main__":
    agent.serve(sys.argv[1], run)
