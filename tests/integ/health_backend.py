# SPDX-License-Identifier: Apache-2.0
"""A backend that is as healthy as a file says, and prints every health check that it gets.

usage: health_backend.py grpc|http IP:PORT FILE

grpc: the server of grpc_server.py with grpc.health.v1.Health beside, on grpcio; the file has the number of a
ServingStatus, 1 = SERVING. http: HTTP/2 without TLS on hyper-h2; /healthz is answered with the status in the file, all
else with 200; and on the same port TCP: PING with PONG. An empty file has checks wait for ever. Calls that say in x-who
where they come from are printed, too.
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
    return path.read_text().strip()


class Calls(grpc.ServerInterceptor):
    """Prints calls, if they say whom they come from."""

    def intercept_service(self, continuation, handler_call_details):
        print_call(dict(handler_call_details.invocation_metadata))
        return continuation(handler_call_details)


def print_call(metadata):
    if "x-who" in metadata:
        print(f"call from={metadata['x-who']}", flush=True)


class Health(grpc.GenericRpcHandler):
    def __init__(self, path):
        self.path = path

    def service(self, handler_call_details):
        if handler_call_details.method != CHECK:
            return None
        metadata = dict(handler_call_details.invocation_metadata)
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self.check(request, context, metadata))

    def check(self, request, context, metadata):
        service = request[2:].decode() if request else ""
        peer = context.peer().split(":")[1]
        said = said_by(self.path)
        print(f"check service={service} user-agent={metadata.get('user-agent')} from={peer} says={said}", flush=True)
        if not said:
            time.sleep(FOREVER_S)
        return bytes([8, int(said or 0)])


def serve_grpc(address, path):
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=64)
    handlers = (Health(path), grpc_server.Handler(grpc_server.Echo(address.split(":")[0])))
    server = grpc.server(pool, handlers=handlers, options=grpc_server.OPTIONS, interceptors=(Calls(),))
    if server.add_insecure_port(address) == 0:
        sys.exit(f"cannot listen on {address}")
    server.start()
    print("listens", flush=True)
    server.wait_for_termination()


def answer(sock, connection, stream, request, path):
    status = "200"
    if request[":path"] == "/healthz":
        fields = " ".join(f"{name}={request.get(name)}" for name in (":method", ":authority", "x-check"))
        status = said_by(path)
        print(f"check {fields} from={sock.getpeername()[0]} says={status}", flush=True)
    else:
        print_call(request)
    if status:
        fields = [(":status", status), ("x-status", "seen"), ("x-backend", sock.getsockname()[0])]
        connection.send_headers(stream, fields, end_stream=True)


def serve_pings(sock, path):
    while sock.recv(4, socket.MSG_WAITALL):
        status = said_by(path)
        print(f"check PING from={sock.getpeername()[0]} says={status}", flush=True)
        if status:
            sock.sendall(b"PONG")


def serve_connection(sock, path):
    with sock, contextlib.suppress(OSError, h2.exceptions.ProtocolError):
        if sock.recv(4, socket.MSG_PEEK | socket.MSG_WAITALL) == b"PING":
            serve_pings(sock, path)
            return
        connection = h2_peer.session(sock, is_client=False)
        print("connection", flush=True)
        while (events := h2_peer.events_of(sock, connection)) is not None:
            for event in events:
                if isinstance(event, h2.events.RequestReceived):
                    answer(sock, connection, event.stream_id, dict(event.headers), path)
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
