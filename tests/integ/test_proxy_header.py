# SPDX-License-Identifier: Apache-2.0
"""Whom requests come from, through shuntd: frontends that begin with a PROXY header of HAProxy or curl, and an edge
that clients cannot deceive."""

import re
import sys

import pytest

import resources
from lab import wait_until
from resources import Folder
from testbed import EXIT_TIMEOUT_S, HERE, PORT, VIP, Testbed

PLAIN, EDGE, BEHIND, ONLY_V2, ELSEWHERE = PORT, 8081, 8082, 8083, 8084
BACKEND, BACKEND_PORT = "10.82.1.1", 9000
CLIENT = "10.81.0.1"
FORGED = "192.0.2.66"
THIRD = "127.0.0.7"  # who asks HAProxy
V1_PORT, V2_PORT = 7001, 7002  # of HAProxy
FRONTENDS = f"""
  - {{name: edge, address: {VIP}, port: {EDGE}, target: edge}}
  - {{name: behind, address: {VIP}, port: {BEHIND}, target: edge, proxy_protocol: {{allow: [{CLIENT}/32]}}}}
  - {{name: only-v2, address: {VIP}, port: {ONLY_V2}, target: edge,
     proxy_protocol: {{allow: [10.81.0.0/24], v1: false}}}}
  - {{name: elsewhere, address: {VIP}, port: {ELSEWHERE}, target: edge, proxy_protocol: {{allow: [192.0.2.0/24]}}}}
"""
HAPROXY = f"""
defaults
  mode tcp
  timeout connect 5s
  timeout client 20s
  timeout server 20s
listen v1
  bind 127.0.0.1:{V1_PORT}
  server one {VIP}:{BEHIND} send-proxy
listen v2
  bind 127.0.0.1:{V2_PORT}
  server one {VIP}:{BEHIND} send-proxy-v2
"""


class Bed(Testbed):
    def config_text(self):
        line = f"  - {{name: web, address: {VIP}, port: {PORT}, target: web}}\n"
        return super().config_text().replace(line, line + FRONTENDS.lstrip("\n"))

    def ask(self, port, *words, ip=VIP):
        """(curl's exit code, what the backend saw in x-forwarded-for)."""
        done = self.lab.exec("client", ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "20", "-o", "/dev/null",
                                        "-D", "-", *words, f"http://{ip}:{port}/"], check=False)
        seen = re.search(r"^x-for: *(.*?)\r?$", done.stdout, re.MULTILINE)
        return done.returncode, seen[1] if seen else None

    def counter(self, name):
        return sum(worker["proxy"][name] for worker in self.show_workers())


@pytest.fixture(name="bed")
def fixture_bed(lab):
    bed = Bed(lab)
    bed.add_backend_address(BACKEND)
    lab.start("backends", "peer", [sys.executable, HERE / "h2_peer.py", "serve", str(BACKEND_PORT)])
    bed.wait_connect("backends", BACKEND, BACKEND_PORT)
    edge = resources.listener("edge", "routes")
    edge["api_listener"]["api_listener"]["use_remote_address"] = True
    Folder(bed.xds_folder).set(
        resources.listener("web", "routes"), edge,
        resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "one"))),
        resources.cluster("one"), resources.endpoints("one", (BACKEND, BACKEND_PORT)))
    bed.start_xds()
    bed.start_daemon()
    yield bed
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def test_a_forged_address_is_the_clients_word_alone(bed):
    """HX-50, HX-52."""
    forged = ("-H", f"x-forwarded-for: {FORGED}")
    assert bed.ask(PLAIN, *forged) == (0, FORGED)
    assert bed.ask(PLAIN) == (0, "")
    assert bed.ask(EDGE) == (0, CLIENT)
    assert bed.ask(EDGE, *forged) == (0, f"{FORGED},{CLIENT}")


def test_haproxy_and_curl_say_whose_connection_it_is(bed):
    """PP-01."""
    path = bed.lab.dir / "haproxy.cfg"
    path.write_text(HAPROXY)
    haproxy = bed.lab.start("client", "haproxy", ["haproxy", "-db", "-f", path])
    for port in (V1_PORT, V2_PORT):
        bed.wait_connect("client", "127.0.0.1", port, haproxy)
    for port in (V1_PORT, V2_PORT):
        assert bed.ask(port, "--interface", THIRD, ip="127.0.0.1") == (0, THIRD)
    assert bed.ask(V2_PORT, "-H", f"x-forwarded-for: {FORGED}", ip="127.0.0.1") == (0, f"{FORGED},127.0.0.1")
    assert bed.ask(BEHIND, "--haproxy-protocol") == (0, CLIENT)
    assert bed.counter("headers_taken") >= 4
    haproxy.stop()


def test_without_the_header_that_is_due_nothing_is_served(bed):
    """PP-07, PP-09, PP-10."""
    for port, words, counter in ((BEHIND, (), "headers_missing"), (ONLY_V2, ("--haproxy-protocol",), "headers_missing"),
                                 (ELSEWHERE, ("--haproxy-protocol",), "headers_untrusted")):
        before = bed.counter(counter)
        code, seen = bed.ask(port, *words)
        assert code and seen is None, (port, code, seen)
        wait_until(lambda: bed.counter(counter) > before, 20, f"{counter} of port {port}")  # noqa: B023
    code, seen = bed.ask(EDGE, "--haproxy-protocol")
    assert code and seen is None
    assert bed.ask(EDGE) == (0, CLIENT)
