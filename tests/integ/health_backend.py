# SPDX-License-Identifier: Apache-2.0
"""A backend that is as healthy as a file says, and prints every health check that it gets.

usage: health_backend.py grpc|http IP:PORT FILE

grpc: the server of grpc_server.py with grpc.health.v1.Health beside, on grpcio; the file has the number of a
ServingStatus, 1 = SERVING. http: HTTP/2 without TLS on hyper-h2; /healthz is answered with the status in the file, all
else with 200. An empty file has checks wait for ever.
"""

import concurrent.futures
import contextlib
import pathlib
import socket
import sys
import threading
import time

import grpc
import h2.events
import h2.exceptions

import grpc_server
import h2_peer

CHECK = "/grpc.health.v1.Health/Check"
FOREVER_S = 60


def said_by(path):
    text = path.read_text().strip()
    if not text:
        time.sleep(FOREVER_S)
    return int(text or 0)


class Health(grpc.GenericRpcHandler):
    def __init__(self, path):
        self.path = path

    def service(self, handler_call_details):
        if handler_call_details.method != CHECK:
            return None
        metadata = dict(handler_call_details.invocation_metadata)
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self.check(request, context, metadata))

    def check(self, request, _context, metadata):
        service = request[2:].decode() if request else ""
        print(f"check service={service} user-agent={metadata.get('user-agent')}", flush=True)
        return bytes([8, said_by(self.path)])


def serve_grpc(address, path):
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=64)
    handlers = (Health(path), grpc_server.Handler(grpc_server.Echo(address.split(":")[0])))
    server = grpc.server(pool, handlers=handlers, options=grpc_server.OPTIONS)
    if server.add_insecure_port(address) == 0:
        sys.exit(f"cannot listen on {address}")
    server.start()
    print("listens", flush=True)
    server.wait_for_termination()


def answer(connection, stream, request, path):
    status = 200
    if request[":path"] == "/healthz":
        fields = " ".join(f"{name}={request.get(name)}" for name in (":method", ":authority", "x-check"))
        print(f"check {fields}", flush=True)
        status = said_by(path)
    connection.send_headers(stream, [(":status", str(status)), ("x-status", "seen")], end_stream=True)


def serve_connection(sock, path):
    with sock, contextlib.suppress(OSError, h2.exceptions.ProtocolError):
        connection = h2_peer.session(sock, is_client=False)
        print("connection", flush=True)
        while (events := h2_peer.events_of(sock, connection)) is not None:
            for event in events:
                if isinstance(event, h2.events.RequestReceived):
                    answer(connection, event.stream_id, dict(event.headers), path)
            sock.sendall(connection.data_to_send())


def serve_http(address, path):
    host, port = address.split(":")
    with socket.create_server((host, int(port))) as listener:
        print("listens", flush=True)
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=serve_connection, args=(sock, path), daemon=True).start()


if __name__ == "__main__":
    kind, where, file = sys.argv[1:]
    {"grpc": serve_grpc, "http": serve_http}[kind](where, pathlib.Path(file))
