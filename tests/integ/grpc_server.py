#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A gRPC backend that says who it is. Raw bytes on the wire, no generated code.

usage: grpc_server.py NAME IP:PORT [xds]

With xds its listener, and who it is, come from the xDS server of its bootstrap (A36, A29).

Every answer has `x-backend: NAME` in its initial metadata, and gives request metadata whose key
starts with x-echo back as trailing metadata (for x-echo-pad with blanks around), and x-load-bin as the backend's own
report of its load (ORCA). /shunt.test.Echo/... has the methods below; any other service answers every method with the
backend's name, and lacks all methods called Missing.

Those others obey `x-script: step,step,...`, a step for each attempt of the call, the last one for
all further attempts. A step is a status, 0 for the usual answer, perhaps with a word after it:
`14`; `14head` for a status that comes after initial metadata; `14push50` for one with
grpc-retry-pushback-ms: 50; `0wait300` for one that comes 300 ms later. `x-script-NAME` is for the
backend of that name alone. Trailing metadata then tell the attempt, and to `x-want-deadline` the
time that was left.
"""

import concurrent.futures
import json
import re
import signal
import sys
import threading
import time
import zlib

import grpc

ECHO = "/shunt.test.Echo/"
CODES = {code.value[0]: code for code in grpc.StatusCode}
STEP = re.compile(r"(\d+)(?:(head|push|wait)(-?\d*))?")
CHUNK = bytes(range(256)) * 4096  # 1 MiB
OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
           ("grpc.so_reuseport", 0), ("grpc.http2.max_ping_strikes", 2))


class Echo:
    """The methods; the ones with `_stream` in their signature comment stream."""

    def __init__(self, name):
        self.name = name
        self.lock = threading.Lock()
        self.hanging = self.cancelled = 0  # calls that hang, and those that were called off

    def greet(self, context):
        context.send_initial_metadata((("x-backend", self.name),))
        echoed = [(key, f" {value}  " if key == "x-echo-pad" else value)
                  for key, value in context.invocation_metadata() if key.startswith("x-echo")]
        echoed += [("endpoint-load-metrics-bin", value)
                   for key, value in context.invocation_metadata() if key == "x-load-bin"]
        context.set_trailing_metadata([*(context.trailing_metadata() or ()), *echoed])

    def name_only(self, _request, context):
        metadata = dict(context.invocation_metadata())
        script = metadata.get(f"x-script-{self.name}") or metadata.get("x-script")
        if script:
            self.follow(script, metadata, context)
        self.greet(context)
        return self.name.encode()

    def follow(self, script, metadata, context):
        """Plays this attempt's step; comes back when the usual answer is to be given."""
        attempt = int(metadata.get("grpc-previous-rpc-attempts", 0))
        steps = script.split(",")
        status, word, number = STEP.fullmatch(steps[min(attempt, len(steps) - 1)]).groups()
        trailing = [("x-backend", self.name), ("x-attempt", str(attempt))]
        if "x-want-deadline" in metadata:
            trailing.append(("x-deadline-ms", str(int(1000 * (context.time_remaining() or 0)))))
        if word == "wait":
            time.sleep(int(number) / 1000)
        if word == "head":
            context.send_initial_metadata((("x-backend", self.name),))
        if word == "push":
            trailing.append(("grpc-retry-pushback-ms", number))
        context.set_trailing_metadata(trailing)
        if status != "0":
            context.abort(CODES[int(status)], f"attempt {attempt} at {self.name}")

    def unary(self, request, context):
        self.greet(context)
        return request

    def headers(self, _request, context):
        """All request metadata, as JSON; binary values in hex."""
        self.greet(context)
        pairs = [(k, v.hex() if isinstance(v, bytes) else v)
                 for k, v in context.invocation_metadata()]
        return json.dumps(pairs).encode()

    def expand(self, request, context):
        """{"chunks": n, "bytes": each, "pause_s": between}: that many messages."""
        self.greet(context)
        wish = json.loads(request)
        chunk = CHUNK[:wish["bytes"]]
        for _ in range(wish["chunks"]):
            yield chunk
            time.sleep(wish.get("pause_s", 0))

    def digest(self, requests, context):
        """What came: number of messages, bytes, CRC of all."""
        self.greet(context)
        count = total = crc = 0
        for request in requests:
            count += 1
            total += len(request)
            crc = zlib.crc32(request, crc)
        return json.dumps({"count": count, "bytes": total, "crc": crc}).encode()

    def chat(self, requests, context):
        self.greet(context)
        yield from requests

    def fail(self, request, context):
        """{"code": status number, "details": text}."""
        self.greet(context)
        wish = json.loads(request)
        context.abort(CODES[wish["code"]], wish["details"])

    def large(self, request, context):
        """{"initial": bytes of initial metadata, "trailing": of trailing}."""
        wish = json.loads(request)
        context.send_initial_metadata((("x-large", "i" * wish["initial"]),))
        context.set_trailing_metadata((("x-large", "t" * wish["trailing"]),))
        return b""

    def hang(self, _request, context):
        """Never answers; counts how often it was called, and called off."""
        gone = threading.Event()
        with self.lock:
            self.hanging += 1
        if not context.add_callback(gone.set):
            gone.set()
        gone.wait(60)
        with self.lock:
            self.cancelled += 1
        return b""

    def seen(self, _request, context):
        self.greet(context)
        with self.lock:
            return json.dumps({"hanging": self.hanging, "cancelled": self.cancelled}).encode()


class Handler(grpc.GenericRpcHandler):
    def __init__(self, echo):
        self.echo = echo
        self.methods = {
            "Unary": grpc.unary_unary_rpc_method_handler(echo.unary),
            "Headers": grpc.unary_unary_rpc_method_handler(echo.headers),
            "Expand": grpc.unary_stream_rpc_method_handler(echo.expand),
            "Digest": grpc.stream_unary_rpc_method_handler(echo.digest),
            "Chat": grpc.stream_stream_rpc_method_handler(echo.chat),
            "Fail": grpc.unary_unary_rpc_method_handler(echo.fail),
            "Large": grpc.unary_unary_rpc_method_handler(echo.large),
            "Hang": grpc.unary_unary_rpc_method_handler(echo.hang),
            "Seen": grpc.unary_unary_rpc_method_handler(echo.seen),
        }

    def service(self, handler_call_details):
        path = handler_call_details.method
        if path.startswith(ECHO):
            return self.methods.get(path[len(ECHO):])
        if path.endswith("/Missing"):
            return None
        return grpc.unary_unary_rpc_method_handler(self.echo.name_only)


def main():
    name, address, *kind = sys.argv[1:]
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=128)
    server = grpc.server(pool, handlers=(Handler(Echo(name)),), options=OPTIONS, xds=kind == ["xds"])
    credentials = grpc.xds_server_credentials(grpc.insecure_server_credentials()) if kind else None
    if (server.add_secure_port(address, credentials) if kind else server.add_insecure_port(address)) == 0:
        sys.exit(f"cannot listen on {address}")
    server.start()
    print(f"{name} listens on {address}, grpcio {grpc.__version__}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
