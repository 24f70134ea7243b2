# SPDX-License-Identifier: Apache-2.0
"""A backend of gRPC, on hyper-h2, whose first attempts fail together, and that tells how many come again.

usage: retry_backend.py IP:PORT COUNT

Requests of one peer for one path wait until COUNT of them have come, and all end with status 14 then. Each that comes
once more, by its x-id, is answered with status 0, and printed: `again PEER PATH`.
"""

import contextlib
import socket
import sys
import threading

import h2.events
import h2.exceptions

import h2_peer


def end(connection, stream, status):
    with contextlib.suppress(h2.exceptions.StreamClosedError):  # called off meanwhile
        connection.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc"),
                                         ("grpc-status", str(status))], end_stream=True)


def serve(sock, count):
    """A connection. A proxy with one worker has one, so that none needs to know of another."""
    peer = sock.getpeername()[0]
    waiting, seen = {}, set()
    with sock, contextlib.suppress(OSError, h2.exceptions.ProtocolError):
        connection = h2_peer.session(sock, is_client=False)
        heads = {}
        while (events := h2_peer.events_of(sock, connection)) is not None:
            for event in events:
                if isinstance(event, h2.events.RequestReceived):
                    heads[event.stream_id] = dict(event.headers)
                if not isinstance(event, h2.events.StreamEnded):
                    continue
                head = heads.pop(event.stream_id)
                path, name = head[":path"], head["x-id"]
                if name in seen:
                    print(f"again {peer} {path}\n", end="", flush=True)  # one write: others print, too
                    end(connection, event.stream_id, 0)
                    continue
                seen.add(name)
                waiting.setdefault(path, []).append(event.stream_id)
                if len(waiting[path]) == count:
                    for stream in waiting.pop(path):
                        end(connection, stream, 14)
            sock.sendall(connection.data_to_send())


if __name__ == "__main__":
    host, port = sys.argv[1].split(":")
    with socket.create_server((host, int(port))) as listener:
        print("listens", flush=True)
        while True:
            taken, _ = listener.accept()
            threading.Thread(target=serve, args=(taken, int(sys.argv[2])), daemon=True).start()
