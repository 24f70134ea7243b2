# SPDX-License-Identifier: Apache-2.0
"""Whom a request comes from, as Envoy tells backends: each row of forwarded_rows.txt, which the unit test of
dataplane/proxy/forwarded.c has to give as well. A PROXY header says what the other end of the connection is."""

import json
import socket
import socketserver
import subprocess
import threading
import time

import pytest

from envoy_proxy import BINARY
from forwarded_table import manager_of, read_rows
from resources import HTTP_MANAGER, ROUTER, TYPES

MIN_ROWS = 40
START_S, ANSWER_S = 45, 30
CLIENT = "x-test-client"  # what Envoy takes the client's address for
PROXY_FILTER = TYPES + "extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"


class Echo(socketserver.StreamRequestHandler):
    """Answers with the fields of each request."""

    def handle(self):
        while self.rfile.readline().strip():
            fields = []
            while line := self.rfile.readline().decode().rstrip("\r\n"):
                fields.append(line.split(": ", 1) if ": " in line else [line.rstrip(":"), ""])
            body = json.dumps(fields).encode()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def listener(folder, number, settings):
    routes = {"virtual_hosts": [{
        "name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "echo"}}]}],
        "request_headers_to_add": [{"header": {
            "key": CLIENT, "value": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"}}]}
    manager = {"@type": HTTP_MANAGER, "stat_prefix": "oracle", "codec_type": "HTTP1", "generate_request_id": False,
               "route_config": routes, **manager_of(settings),
               "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER, "suppress_envoy_headers": True}}]}
    return {"name": f"l{number}", "address": {"pipe": {"path": f"{folder}/{number}"}},
            "listener_filters": [{"name": "proxy", "typed_config": {"@type": PROXY_FILTER}}],
            "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}


def configuration(folder, all_settings):
    endpoint = {"endpoint": {"address": {"pipe": {"path": f"{folder}/echo"}}}}
    return {"static_resources": {
        "listeners": [listener(folder, number, settings) for number, settings in enumerate(all_settings)],
        "clusters": [{"name": "echo", "type": "STATIC", "connect_timeout": "5s", "load_assignment": {
            "cluster_name": "echo", "endpoints": [{"lb_endpoints": [endpoint]}]}}]}}


def wait_listening(process, path):
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(path)
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"nobody listens at {path}")


def ask(path, row):
    """(fields that the backend got, the client's address)."""
    family = "TCP6" if ":" in row.peer else "TCP4"
    head = f"PROXY {family} {row.peer} {row.peer} 1000 80\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in row.sent)
    said = b""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(ANSWER_S)
        peer.connect(path)
        peer.sendall(head.encode() + b"\r\n")
        while piece := peer.recv(65536):
            said += piece
    assert b" 200 OK" in said, (row, said)
    fields = json.loads(said[said.index(b"[["):said.rindex(b"]]") + 2])
    seen = sorted((name, value) for name, value in fields
                  if name.startswith(("x-", "forwarded")) and name != CLIENT)
    return seen, dict(fields)[CLIENT]


@pytest.fixture(name="envoy")
def fixture_envoy(tmp_path):
    """ask(row) for any row."""
    rows = read_rows()
    all_settings = [s for i, s in enumerate(row.settings for row in rows) if s not in [r.settings for r in rows[:i]]]
    config = tmp_path / "envoy.json"
    config.write_text(json.dumps(configuration(tmp_path, all_settings)))
    server = socketserver.ThreadingUnixStreamServer(f"{tmp_path}/echo", Echo)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open(tmp_path / "out", "wb") as out, subprocess.Popen(
            [BINARY, "-c", config, "-l", "error", "--concurrency", "1", "--disable-hot-restart"],
            stdout=out, stderr=out) as process:
        try:
            wait_listening(process, f"{tmp_path}/{len(all_settings) - 1}")
            yield lambda row: ask(f"{tmp_path}/{all_settings.index(row.settings)}", row)
        finally:
            process.kill()
            server.shutdown()
            server.server_close()


@pytest.mark.timeout(120)
def test_each_row_is_what_envoy_does(envoy):
    """HX-51..HX-57, HX-61."""
    rows = read_rows()
    assert len(rows) >= MIN_ROWS
    wrong = []
    for row in rows:
        seen, client = envoy(row)
        if (seen, client) != (sorted(row.seen), row.client):
            wrong.append(f"line {row.line}: Envoy gives {seen}, client {client}")
    assert not wrong, "\n".join(wrong)
