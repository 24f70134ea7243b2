# SPDX-License-Identifier: Apache-2.0
"""Small HTTP/2 peers on hyper-h2: a server whose answers carry the address it was reached at and
what it saw of the request (a request with `x-never` gets none), and a client that asks one request
after the other and notes every answer.

usage: h2_peer.py serve PORT [ANSWERS] | probe IP PORT PATH CONNECTIONS STOP_FILE [PAUSE_S]

With ANSWERS, a connection of the server says GOAWAY after that many, and answers nothing more.
A request with `x-resets: CODE COUNT` and an `x-id` is reset with that code the first COUNT times
that this id comes; `x-seen` in an answer tells how often it came before.
"""

import collections
import contextlib
import json
import os
import socket
import sys
import threading
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions

ADDRESS = "x-address"
SEEN = collections.Counter()  # how often each x-id came
LOCK = threading.Lock()


def session(sock, is_client):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = h2.connection.H2Connection(
        h2.config.H2Configuration(client_side=is_client, header_encoding="utf-8"))
    connection.initiate_connection()
    sock.sendall(connection.data_to_send())
    return connection


def events_of(sock, connection):
    """The next events; None when the peer is gone."""
    data = sock.recv(65536)
    if not data:
        return None
    events = connection.receive_data(data)
    sock.sendall(connection.data_to_send())
    return events


def serve_one(sock, answers):
    address = sock.getsockname()[0]
    connection = session(sock, is_client=False)
    seen = {}
    while (events := events_of(sock, connection)) is not None:
        for event in events:
            if isinstance(event, h2.events.RequestReceived):
                seen[event.stream_id] = dict(event.headers)
            elif isinstance(event, h2.events.StreamReset):
                seen.pop(event.stream_id, None)
            elif isinstance(event, h2.events.StreamEnded):
                request = seen.pop(event.stream_id)
                if "x-never" in request or reset_of(connection, event.stream_id, request):
                    continue
                with contextlib.suppress(h2.exceptions.StreamClosedError):  # called off meanwhile
                    connection.send_headers(event.stream_id, answer_to(request, address),
                                            end_stream=True)
                answers -= 1
                if answers == 0:
                    leave(sock, connection, event.stream_id)
                    return
        sock.sendall(connection.data_to_send())


def reset_of(connection, stream, request):
    """Whether the request is one to be reset, and is."""
    code, count = map(int, request.get("x-resets", "0 0").split())
    with LOCK:
        SEEN[request.get("x-id")] += 1
        seen = SEEN[request.get("x-id")]
    if seen > count:
        return False
    connection.reset_stream(stream, code)
    return True


def answer_to(request, address):
    return [(":status", "200"), (ADDRESS, address), ("x-path", request.get(":path", "")),
            ("x-authority", request.get(":authority", "")),
            ("x-for", request.get("x-forwarded-for", "")),
            ("x-cert", request.get("x-forwarded-client-cert", "")),
            ("x-seen", str(SEEN[request.get("x-id")] - 1))]


def leave(sock, connection, last_stream):
    """GOAWAY; then the peer closes."""
    connection.close_connection(last_stream_id=last_stream)
    sock.sendall(connection.data_to_send())
    while sock.recv(65536):
        pass
    sock.close()


def serve(port, answers=-1):
    listener = socket.create_server(("0.0.0.0", int(port)), backlog=128)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve_one, args=(sock, int(answers)), daemon=True).start()


def ask(sock, connection, authority, path):
    """One request; its response headers."""
    stream = connection.get_next_available_stream_id()
    connection.send_headers(stream, [(":method", "GET"), (":scheme", "http"), (":path", path),
                                     (":authority", authority)], end_stream=True)
    sock.sendall(connection.data_to_send())
    answer = {}
    while True:
        events = events_of(sock, connection)
        if events is None:
            return {":status": "connection lost"}
        for event in events:
            if isinstance(event, h2.events.ResponseReceived):
                answer = dict(event.headers)
            elif isinstance(event, h2.events.StreamReset):
                return {":status": f"reset {event.error_code}"}
            elif isinstance(event, h2.events.StreamEnded):
                return answer


def probe_one(ip, port, path, stop_file, pause_s, ret):
    with socket.create_connection((ip, port), 10) as sock:
        sock.settimeout(20)
        connection = session(sock, is_client=True)
        is_last = False
        while not is_last:
            is_last = os.path.exists(stop_file)  # one more: its answer is of what was there when we were stopped
            answer = ask(sock, connection, ip, path)
            ret.append((answer.get(":status"), answer.get(ADDRESS), time.monotonic()))
            time.sleep(pause_s)


def probe(ip, port, path, connections, stop_file, pause_s=0):
    answers = [[] for _ in range(int(connections))]
    threads = [threading.Thread(target=probe_one,
                                args=(ip, int(port), path, stop_file, float(pause_s), ret))
               for ret in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(answers))


if __name__ == "__main__":
    {"serve": serve, "probe": probe}[sys.argv[1]](*sys.argv[2:])
