#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""As much of a Kubernetes API server as istiod wants to start: it has two namespaces and nothing else. Lists are empty,
nothing is ever told to those who watch, and nothing can be written.

usage: kube_stub.py PORT

Listens on the loopback, without TLS.
"""

import http.server
import json
import re
import socketserver
import sys
import time
import urllib.parse

NAMESPACES = ("default", "istio-system")
VERSION = {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
LIST = re.compile(r"/(?:api|apis/[^/]+)/[^/]+/(?:namespaces/[^/]+/)?([a-z]+)")
WATCH_S = 3600


def items_of(resource):
    if resource != "namespaces":
        return []
    return [{"metadata": {"name": name, "uid": name, "resourceVersion": "1",
                          "labels": {"kubernetes.io/metadata.name": name}}} for name in NAMESPACES]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):  # what istiod asks for is in its own log
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refuse(self, status, reason):
        self.answer(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
                             "code": status})

    def watch(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        time.sleep(WATCH_S)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        found = LIST.fullmatch(url.path)
        if url.path == "/version":
            self.answer(200, VERSION)
        elif not found:
            self.refuse(404, "NotFound")
        elif query.get("watch") in (["true"], ["1"]):
            self.watch()
        else:
            # Where no kind is told, a client takes the one that it asked for.
            metadata = "as=PartialObjectMetadataList" in self.headers.get("Accept", "")
            kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"} if metadata else {}
            self.answer(200, {**kind, "metadata": {"resourceVersion": "1"}, "items": items_of(found[1])})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.refuse(403, "Forbidden")

    do_PUT = do_PATCH = do_POST


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
