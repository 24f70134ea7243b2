#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds requests: opens so many from each of these addresses, on a connection each, and waits until it is killed.

usage: hold_agent.py IP PORT PATH REQUESTS SOURCE...
"""

import socket
import sys
import threading
import time

import h2_peer

# A call that the backends of grpc_server.py take 40 s for.
PSEUDO = ((":method", "POST"), (":scheme", "http"), (":authority", "web.example"))
FIELDS = (("content-type", "application/grpc"), ("te", "trailers"), ("x-script", "0wait40000"))
EMPTY_MESSAGE = bytes(5)


def hold(address, source, path, n):
    with socket.create_connection(address, 10, (source, 0)) as sock:
        sock.settimeout(None)
        connection = h2_peer.session(sock, is_client=True)
        for _ in range(n):
            stream = connection.get_next_available_stream_id()
            connection.send_headers(stream, [*PSEUDO, (":path", path), *FIELDS])
            connection.send_data(stream, EMPTY_MESSAGE, end_stream=True)
        sock.sendall(connection.data_to_send())
        while h2_peer.events_of(sock, connection) is not None:
            pass


def main():
    ip, port, path, n, *sources = sys.argv[1:]
    for source in sources:
        threading.Thread(target=hold, args=((ip, int(port)), source, path, int(n)), daemon=True).start()
    time.sleep(600)


if __name__ == "__main__":
    main()
