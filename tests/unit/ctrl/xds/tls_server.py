#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server with TLS for one test: tls_server.py DIR prints its port and sends each message back.
DIR has its key and certificate, server.key and server.pem, and ca.pem, which clients must be of."""
import concurrent.futures
import pathlib
import sys
import threading

import grpc


class Echo(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.stream_stream_rpc_method_handler(lambda requests, context: requests)


def main():
    at = pathlib.Path(sys.argv[1])
    key, cert, ca = ((at / name).read_bytes() for name in ("server.key", "server.pem", "ca.pem"))
    creds = grpc.ssl_server_credentials([(key, cert)], root_certificates=ca, require_client_auth=True)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=(Echo(),))
    print(server.add_secure_port("127.0.0.1:0", creds), flush=True)
    server.start()
    threading.Timer(60, server.stop, (0,)).start()
    sys.stdin.read()  # the test's end
    server.stop(0)


if __name__ == "__main__":
    main()
