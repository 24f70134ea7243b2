#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An agent (agent.py) that is many gRPC backends, each an address that listens or does not.

usage: balance_backends.py SOCKET

Every method of a backend answers OK with the last number of the backend's address as `x-backend`,
and gives the session cookie that came back as `x-cookie`. A request with `x-hold-ms` is answered
that much later, or at once when let go.

Asked for {op, addresses, …}: `listen`; `close` (connections are reset); `behave` with `status`
(what it answers instead of 0), `peers` ({a client's address: what that one is answered instead}),
`load` (fields of an ORCA report, told at the end of each answer) and `late_s` (of a new connection:
how long until it says anything); `counts`, the answer to which is {address: {connections, live,
requests, peers}} with peers as {a client's address: requests}; `let_go`.
"""

import asyncio
import base64
import collections
import contextlib
import struct
import sys
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

import agent

MESSAGE = bytes(5)  # empty, not compressed
ORCA_FIELDS = {"cpu": 1, "qps": 6, "eps": 7, "application": 9}  # of xds.data.orca.v3.OrcaLoadReport
MAX_STREAMS = 1000
OP_TIMEOUT_S = 10


def load_report(load):
    """The trailer's value for a report of these doubles."""
    wire = b"".join(bytes([ORCA_FIELDS[name] << 3 | 1]) + struct.pack("<d", value)
                    for name, value in load.items())
    return base64.b64encode(wire).decode().rstrip("=")


class Backend:
    """One address. Everything here happens on the event loop's thread."""

    def __init__(self, ip, port):
        self.ip, self.port = ip, port
        self.name = ip.rsplit(".", 1)[1]
        self.listener = None
        self.live = set()
        self.connections = 0
        self.requests = collections.Counter()  # by peer
        self.status, self.peers, self.load, self.late_s = 0, {}, None, 0

    async def listen(self):
        if not self.listener:
            self.listener = await asyncio.get_running_loop().create_server(
                lambda: Connection(self), self.ip, self.port)

    async def close(self):
        if self.listener:
            self.listener.close()
            self.listener = None
        for connection in list(self.live):
            connection.transport.abort()

    def status_for(self, peer):
        return self.peers.get(peer, self.status)

    def trailers(self, status):
        made = [("grpc-status", str(status))]
        if self.load:
            made.append(("endpoint-load-metrics-bin", load_report(self.load)))
        return made


class Connection(asyncio.Protocol):
    held = collections.OrderedDict()  # of all backends: (connection, stream) to be answered later

    def __init__(self, backend):
        self.backend = backend
        self.transport = self.peer = None
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests = {}
        self.spoken, self.unread = False, b""

    def connection_made(self, transport):
        self.transport = transport
        self.peer = transport.get_extra_info("peername")[0]
        self.backend.live.add(self)
        self.backend.connections += 1
        self.h2.local_settings[h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS] = MAX_STREAMS
        asyncio.get_running_loop().call_later(self.backend.late_s, self.speak)

    def speak(self):
        """Our SETTINGS are the first that the peer hears."""
        self.spoken = True
        self.h2.initiate_connection()
        self.data_received(b"")

    def connection_lost(self, _why):
        self.backend.live.discard(self)

    def flush(self):
        data = self.h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def data_received(self, data):
        self.unread += data
        if not self.spoken:
            return
        data, self.unread = self.unread, b""
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError:
            events = []
            self.transport.close()
        for event in events:
            self.on_event(event)
        self.flush()

    def on_event(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.requests[event.stream_id] = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self.requests.pop(event.stream_id, None)
        elif isinstance(event, h2.events.StreamEnded):
            self.on_request(event.stream_id)

    def on_request(self, stream):
        self.backend.requests[self.peer] += 1
        hold_ms = int(self.requests[stream].get("x-hold-ms", 0))
        if hold_ms:
            self.held[self, stream] = asyncio.get_running_loop().call_later(
                hold_ms / 1000, self.let_go, stream)
        else:
            self.answer(stream)

    def let_go(self, stream):
        self.held.pop((self, stream)).cancel()
        self.answer(stream)
        self.flush()

    def answer(self, stream):
        request = self.requests.pop(stream, None)
        if request is None:  # called off
            return
        head = [(":status", "200"), ("content-type", "application/grpc"),
                ("x-backend", self.backend.name)]
        if "cookie" in request:
            head.append(("x-cookie", request["cookie"]))
        with contextlib.suppress(h2.exceptions.ProtocolError):  # called off meanwhile
            self.h2.send_headers(stream, head)
            status = self.backend.status_for(self.peer)
            if status == 0:
                self.h2.send_data(stream, MESSAGE)
            self.h2.send_headers(stream, self.backend.trailers(status), end_stream=True)


class Backends:
    def __init__(self):
        self.all = {}

    def find(self, ip, port):
        return self.all.setdefault((ip, port), Backend(ip, port))

    async def run(self, request):
        chosen = [self.find(ip, port) for ip, port in request.get("addresses", ())]
        if request["op"] == "let_go":
            for connection, stream in list(Connection.held):
                connection.let_go(stream)
        elif request["op"] == "counts":
            return {f"{b.ip}:{b.port}": {"connections": b.connections, "live": len(b.live),
                                         "requests": b.requests.total(), "peers": b.requests}
                    for b in chosen or self.all.values()}
        elif request["op"] == "behave":
            for backend in chosen:
                backend.status = request.get("status", 0)
                backend.peers = request.get("peers", {})
                backend.load = request.get("load")
                backend.late_s = request.get("late_s", 0)
        else:
            for backend in chosen:
                await getattr(backend, request["op"])()
        return len(chosen)


def main():
    loop = asyncio.new_event_loop()
    backends = Backends()

    def handle(request):
        return asyncio.run_coroutine_threadsafe(backends.run(request), loop).result(OP_TIMEOUT_S)
    threading.Thread(target=agent.serve, args=(sys.argv[1], handle), daemon=True).start()
    loop.run_forever()


if __name__ == "__main__":
    main()
