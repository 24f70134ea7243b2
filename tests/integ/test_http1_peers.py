# SPDX-License-Identifier: Apache-2.0
"""The same bytes to nginx, to Envoy and (in its unit test) to dataplane/h1: whatever one of them refuses, we refuse.
Where both take what we refuse, the rule or http1_known says why (docs/rules/http1.md)."""

import concurrent.futures
import json
import re
import shutil
import socket
import subprocess
import time

import pytest

from envoy_proxy import BINARY
from http1_known import LAXER, STRICTER
from http1_table import rows
from resources import HTTP_MANAGER, ROUTER, TYPES

MIN_ROWS = 200
START_S = 45
IDLE_S = 2  # after which a peer has said all that it will
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
TAKEN = 204

NGINX = """
daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/nginx.log;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen unix:{dir}/back; location / {{ return 204; }} }}
  server {{ listen unix:{dir}/nginx; location / {{ proxy_pass http://unix:{dir}/back; }} }}
}}
"""


def envoy_config(folder):
    """Envoy answers only when the whole body has come: the filter before the router waits for it."""
    manager = {
        "@type": HTTP_MANAGER, "stat_prefix": "oracle", "codec_type": "HTTP1",
        "http_protocol_options": {"accept_http_10": True},
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "direct_response": {"status": TAKEN}},
            {"match": {"path": "*"}, "direct_response": {"status": TAKEN}}]}]},
        "http_filters": [
            {"name": "whole", "typed_config": {
                "@type": TYPES + "extensions.filters.http.buffer.v3.Buffer", "max_request_bytes": 1 << 20}},
            {"name": "router", "typed_config": {"@type": ROUTER}}],
    }
    return {"static_resources": {"listeners": [{
        "name": "oracle", "address": {"pipe": {"path": f"{folder}/envoy"}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}]}}


def connect(path):
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(IDLE_S)
    peer.connect(str(path))
    return peer


def ask(path, payload):
    """The statuses of all answers to these bytes, interim ones left out."""
    said = b""
    with connect(path) as peer:
        try:
            peer.sendall(payload)
            while piece := peer.recv(65536):
                said += piece
        except (TimeoutError, ConnectionError):
            pass
    return [status for status in map(int, STATUS.findall(said)) if status >= 200]


def start(folder, name, command):
    with open(folder / f"{name}.out", "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connect(folder / name).close()
            return process
        except OSError:
            time.sleep(0.05)
    process.kill()
    process.wait()
    raise AssertionError((folder / f"{name}.out").read_text(errors="replace")[-2000:])


@pytest.fixture(name="peers", scope="module")
def fixture_peers(tmp_path_factory):
    """Their sockets, by name."""
    folder = tmp_path_factory.mktemp("http1")
    (folder / "nginx.conf").write_text(NGINX.format(dir=folder))
    (folder / "envoy.json").write_text(json.dumps(envoy_config(folder)))
    running = []
    try:
        running.append(start(folder, "nginx", [shutil.which("nginx"), "-c", folder / "nginx.conf"]))
        running.append(start(folder, "envoy", [BINARY, "-c", folder / "envoy.json", "-l", "error",
                                               "--concurrency", "1", "--disable-hot-restart"]))
        yield {name: folder / name for name in ("nginx", "envoy")}
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.fixture(name="verdicts", scope="module")
def fixture_verdicts(peers):
    """[(row, {peer: statuses})]"""
    wanted = rows()
    with concurrent.futures.ThreadPoolExecutor(128) as pool:
        said = {name: list(pool.map(lambda row, at=path: ask(at, row.payload), wanted))
                for name, path in peers.items()}
    return [(row, {name: said[name][i] for name in said}) for i, row in enumerate(wanted)]


def told(found):
    return "\n".join(f"{row.rule} {row.name}: {row.verdict}, {said}" for row, said in found)


def more_than(row, statuses):
    """We take a request that this peer does not."""
    return row.taken > statuses.count(TAKEN)


def test_no_peer_refuses_what_we_take(verdicts):
    """H1-24: equal or stricter."""
    assert len(verdicts) >= MIN_ROWS
    laxer = [(row, said) for row, said in verdicts if any(more_than(row, s) for s in said.values())]
    unexplained = [(row, said) for row, said in laxer if (row.rule, row.name) not in LAXER]
    assert not unexplained, told(unexplained)
    assert {(row.rule, row.name) for row, _ in laxer} == set(LAXER), "a row there is no longer true"


def test_what_both_peers_take_and_we_refuse_is_argued(verdicts):
    """H1-24."""
    stricter = [(row, said) for row, said in verdicts
                if all(row.taken < statuses.count(TAKEN) for statuses in said.values())]
    unexplained = [(row, said) for row, said in stricter if (row.rule, row.name) not in STRICTER]
    assert not unexplained, told(unexplained)
    assert {(row.rule, row.name) for row, _ in stricter} == set(STRICTER), "a row there is no longer true"
