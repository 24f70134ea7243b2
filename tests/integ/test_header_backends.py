# SPDX-License-Identifier: Apache-2.0
"""Backends that want a PROXY header in front of each connection: HAProxy and nginx, in plain text and with TLS, and
behind an HTTP proxy. They say in their answers whose connection it was; and the headers themselves are those of
Envoy, byte by byte."""

import json
import re
import socket
import sys

import pytest

import envoy_proxy
import resources
from connect_table import RAW, by_proxy, wrapped
from differential import add_oracle
from lab import wait_until
from lab_fixtures import check_end
from resources import Folder
from test_connect import PROXIES, opened, start_tinyproxy
from test_tls import BACKEND, TlsWorld
from testbed import HERE, PORT, URL, URL6, VIP, VIP6, Testbed

HEADER = "type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport"
IP = {4: "10.82.1.1", 6: "fd82::1:1"}
CLIENT = {4: "10.81.0.1", 6: "fd81::1"}
HAPROXY_PORT, NGINX_PORT, RELAY_PORT, TLS_PORT = 7001, 7002, 7003, 7443
BEHIND = 8082  # a frontend that takes headers
LIMIT_S = 60
AUTHORITY = "lane.test"  # in a TLV that HAProxy knows: PP2_TYPE_AUTHORITY
TLVS = [{"type": 2, "value": "bGFuZS50ZXN0"}]
TLV_BYTES = b"\x02\x00\x09" + AUTHORITY.encode()

pytestmark = pytest.mark.timeout(400)

ANSWER = ("http-request return status 200 hdr x-from %[src]:%[src_port] hdr x-to %[dst]:%[dst_port] "
          "hdr x-authority %[fc_pp_authority]")
HAPROXY = """
global
  stats socket {dir}/haproxy.stats
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend wants-headers
{binds}  {answer}
"""
NGINX = """
daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/nginx.log;
events {{ worker_connections 1000; }}
http {{
  access_log off; client_body_temp_path {dir}/n1; proxy_temp_path {dir}/n2; fastcgi_temp_path {dir}/n3;
  uwsgi_temp_path {dir}/n4; scgi_temp_path {dir}/n5;
  server {{
{listens}    location / {{
      add_header x-from "$proxy_protocol_addr:$proxy_protocol_port";
      add_header x-to "$proxy_protocol_server_addr:$proxy_protocol_server_port";
      add_header x-connection $connection;
      return 200;
    }}
  }}
}}
"""


def headed(version, inner=None, **config):
    """A transport socket with PROXY headers in front of the one inside."""
    return {"name": "header", "typed_config": {
        "@type": HEADER, "config": {"version": version, **config},
        "transport_socket": inner or {"name": "raw", "typed_config": {"@type": RAW}}}}


def at(ip, port):
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def start_haproxy(bed, binds):
    path = bed.lab.dir / "headers.cfg"
    path.write_text(HAPROXY.format(dir=bed.lab.dir, answer=ANSWER, binds="".join(f"  bind {b}\n" for b in binds)))
    return bed.lab.start("backends", "haproxy", ["haproxy", "-db", "-f", path])


def start_nginx(bed, addresses):
    path = bed.lab.dir / "nginx.conf"
    path.write_text(NGINX.format(dir=bed.lab.dir, listens="".join(
        f"    listen {address} http2 proxy_protocol;\n" for address in addresses)))
    return bed.lab.start("backends", "nginx", ["nginx", "-c", path])


class HeaderWorld:
    """One cluster with one backend, which says whose connections it sees."""

    def __init__(self, lab):
        self.bed = Testbed(lab, ip6=True)
        for ip in IP.values():
            self.bed.add_backend_address(ip)
        start_haproxy(self.bed, [f"{at(ip, HAPROXY_PORT)} accept-proxy proto h2" for ip in IP.values()])
        start_nginx(self.bed, [at(ip, NGINX_PORT) for ip in IP.values()])
        for ip in IP.values():
            for port in (HAPROXY_PORT, NGINX_PORT):
                self.bed.wait_connect("backends", ip, port)
        self.bed.more_frontends = [f"{{name: behind, address: {VIP}, port: {BEHIND}, target: web, "
                                   f"proxy_protocol: {{allow: [{CLIENT[4]}/32]}}}}"]
        self.folder = Folder(self.bed.xds_folder)

    def set(self, transport, port, *, family=4, metadata=None, **fields):
        members = resources.endpoints("one", (IP[family], port))
        if metadata:
            members["endpoints"][0]["lb_endpoints"][0]["metadata"] = metadata
        self.folder.set(
            resources.listener("web", "routes"),
            resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "one"))),
            {**resources.cluster("one"), "transport_socket": transport, **fields}, members)

    def start(self):
        self.bed.start_xds()
        self.bed.start_daemon()
        wait_until(lambda: self.row()["state"] == "READY", LIMIT_S, "the backend")
        return self

    def ask(self, *words, url=URL, ns="client"):
        """The fields of the answer to curl. It tries once: its port would be taken the next time."""
        done = self.bed.lab.exec(ns, ["curl", "-sS", "--max-time", "20", "-f", "-o", "/dev/null", "-D", "-",
                                      *map(str, words), f"{url}/"], check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return dict(re.findall(r"^(x-[a-z]+): (.*?)\r?$", done.stdout, re.MULTILINE))

    def counter(self, name):
        return sum(worker["proxy"][name] for worker in self.bed.show_workers())

    def row(self):
        return self.bed.show("endpoints")[0]


@pytest.fixture(name="world")
def fixture_world(lab):
    world = HeaderWorld(lab)
    yield world
    check_end(world.bed)


H2, H1 = "--http2-prior-knowledge", "--http1.1"


@pytest.mark.parametrize("port", (HAPROXY_PORT, NGINX_PORT))
@pytest.mark.parametrize("version", ("V1", "V2"))
def test_pp_20_backends_are_told_whose_connection_it_is(world, version, port):
    """Of either family and protocol, with a client's own header and without."""
    local = 20001
    for family in (4, 6):
        world.set(headed(version), port, family=family)
        if not world.bed.daemon:
            world.start()
        wait_until(lambda: world.row()["endpoint"] == at(IP[family], port)  # noqa: B023
                   and world.row()["state"] == "READY", LIMIT_S, "the backend")
        for url, client, front in ((URL, CLIENT[4], VIP), (URL6, CLIENT[6], VIP6)):
            for protocol in (H2, H1):
                local += 1
                seen = world.ask(protocol, "--local-port", local, url=url)
                assert (seen["x-from"], seen["x-to"]) == (f"{client}:{local}", f"{front}:{PORT}"), seen
    # The header that the client sends names its own addresses: what it says counts, not what we see.
    seen = world.ask(H2, "--haproxy-protocol", "--local-port", 22000, url=f"http://{VIP}:{BEHIND}")
    assert (seen["x-from"], seen["x-to"]) == (f"{CLIENT[4]}:22000", f"{VIP}:{BEHIND}"), seen


def test_pp_20_who_is_in_front_of_the_frontend_is_passed_over(world):
    world.set(headed("V2"), NGINX_PORT)
    world.start()
    header = b"PROXY TCP4 192.0.2.7 198.51.100.8 1234 443\r\n"
    request = header + b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    path = world.bed.lab.dir / "rows.json"
    path.write_text(json.dumps([{"pieces": [request.hex()], "answers": 1, "closed": True}]))
    done = world.bed.lab.exec("client", [
        "sh", "-c", f"exec {sys.executable} {HERE / 'h1_agent.py'} {VIP} {BEHIND} < {path}"])
    head = json.loads(done.stdout)[0]["heads"][0]
    assert "x-from: 192.0.2.7:1234\r\n" in head and "x-to: 198.51.100.8:443\r\n" in head, head


def test_pp_13_each_of_many_clients_has_its_own_connection_until_it_goes(world):
    """nginx numbers its connections."""
    world.set(headed("V2"), NGINX_PORT)
    world.start()
    seen = [world.ask(H2, "--local-port", 23000 + i) for i in range(20)]
    assert [answer["x-from"] for answer in seen] == [f"{CLIENT[4]}:{23000 + i}" for i in range(20)]
    assert len({answer["x-connection"] for answer in seen}) == 20
    wait_until(lambda: world.row()["connections"] == 1, LIMIT_S, "the clients' connections gone")
    report = world.bed.run_h2load(path="/", requests=4000, clients=8, streams=4)
    assert report.perfect, report
    wait_until(lambda: world.row()["connections"] == 1, LIMIT_S, "the clients' connections gone")
    assert world.counter("headers_sent") >= 29 and world.counter("client_backends_refused") == 0


def test_pp_15_the_header_is_sent_behind_an_http_proxy(world):
    proxy = PROXIES[4][0]
    world.bed.add_backend_address(proxy)
    process = start_tinyproxy(world.bed, proxy)
    world.set(wrapped(headed("V2", added_tlvs=TLVS)), HAPROXY_PORT, metadata=by_proxy(proxy))
    world.start()
    seen = world.ask(H2, "--local-port", 24001)
    assert (seen["x-from"], seen["x-authority"]) == (f"{CLIENT[4]}:24001", AUTHORITY), seen
    wait_until(lambda: opened(process) >= 2, LIMIT_S, "ways of ours and of the client's")


def test_pp_20_tls_begins_behind_the_header(lab, tmp_path):
    """With health checks, and a name that the certificate must have."""
    world = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example")
    cluster, members = world.world.extra
    cluster["transport_socket"] = headed("V2", cluster["transport_socket"], added_tlvs=TLVS)
    cluster["health_checks"] = [{
        "timeout": "5s", "interval": "0.5s", "no_traffic_interval": "0.5s", "unhealthy_threshold": 2,
        "healthy_threshold": 1, "http_health_check": {"path": "/"}}]
    address = members["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    address["port_value"] = TLS_PORT
    world.world.set_weights(75, 25)
    pem = tmp_path / "both.pem"
    pem.write_text("".join((world.pki.folder / f"back.{kind}").read_text() for kind in ("pem", "key")))
    start_haproxy(world.bed, [f"{BACKEND}:{TLS_PORT} accept-proxy ssl crt {pem} alpn h2 verify required "
                              f"ca-file {world.pki.folder}/ca.pem"])
    world.bed.wait_connect("backends", BACKEND, TLS_PORT)
    world.start()
    for i in range(5):
        done = world.bed.lab.exec("client", [
            "curl", "-sS", "--http2", "--max-time", "20", "--cacert", world.pki.folder / "ca.pem", "-D", "-",
            "--local-port", str(25001 + i), f"https://{VIP}:{PORT}/tls/"])
        assert f"x-from: {CLIENT[4]}:{25001 + i}" in done.stdout and AUTHORITY in done.stdout, done.stdout
    assert world.cluster_shown()["tls"] == "mtls"
    row = next(r for r in world.bed.show("endpoints") if r["endpoint"] == f"{BACKEND}:{TLS_PORT}")
    assert row["health_check"] == "passed", row
    check_end(world.bed)


# -- beside Envoy

def header_of(version, source, target):
    """Of two (ip, port) of one family."""
    family = 6 if ":" in source[0] else 4
    if version == "V1":
        return f"PROXY TCP{family} {source[0]} {target[0]} {source[1]} {target[1]}\r\n".encode()
    kind = socket.AF_INET6 if family == 6 else socket.AF_INET
    body = b"".join(socket.inet_pton(kind, ip) for ip, _ in (source, target))
    body += b"".join(port.to_bytes(2, "big") for _, port in (source, target)) + TLV_BYTES
    return b"\r\n\r\n\0\r\nQUIT\n\x21" + (b"\x21" if family == 6 else b"\x11") + len(body).to_bytes(2, "big") + body


LOCAL = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"


def is_nobodys(version, header, own):
    if version == "V2":
        return header == LOCAL
    return re.fullmatch(rb"PROXY TCP4 %s %s \d+ %d\r\n" % (own.encode(), IP[4].encode(), RELAY_PORT), header)


def start_envoy(bed, transport, check):
    config = envoy_proxy.configuration(
        resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "one"))),
        {"one": [(IP[4], RELAY_PORT)]}, [])
    cluster = config["static_resources"]["clusters"][0]
    cluster["transport_socket"], cluster["health_checks"] = transport, [check]
    envoy_proxy.start(bed, "oracle", config)


@pytest.mark.skipif(not envoy_proxy.BINARY.exists(), reason="no Envoy")
@pytest.mark.parametrize("version", ("V1", "V2"))
def test_pp_14_headers_are_envoys_byte_by_byte(world, version):
    """Clients', with a TLV, and those of health checks; two requests of one client are one connection."""
    relay = world.bed.lab.start("backends", "relay", [
        sys.executable, HERE / "header_relay.py", IP[4], str(RELAY_PORT), str(HAPROXY_PORT)])
    wait_until(lambda: "listens" in relay.output(), LIMIT_S, "the relay")
    tlvs = TLVS if version == "V2" else []
    check = {"timeout": "5s", "interval": "0.5s", "no_traffic_interval": "0.5s", "unhealthy_threshold": 2,
             "healthy_threshold": 1, "http_health_check": {"path": "/", "host": "a"}}
    add_oracle(world.bed)

    def headers():
        return [bytes.fromhex(line) for line in relay.output().splitlines() if line != "listens"]

    start_envoy(world.bed, headed(version, added_tlvs=tlvs), {**check, "http_health_check": {
        "path": "/", "host": "a", "codec_client_type": "HTTP2"}})
    envoy = (envoy_proxy.ADDRESS, envoy_proxy.PORT)
    url = f"http://{envoy[0]}:{envoy[1]}"
    seen = world.ask(H2, "--local-port", 26001, url=url, ns="oracle")
    assert seen["x-from"] == "127.0.0.1:26001"
    wait_until(lambda: len(headers()) >= 2, LIMIT_S, "a check and a client of Envoy's")
    n_envoys = len(headers())
    world.set(headed(version, added_tlvs=tlvs), RELAY_PORT, health_checks=[check])
    world.start()
    assert world.ask(H2, "--local-port", 26002)["x-from"] == f"{CLIENT[4]}:26002"
    theirs, ours = headers()[:n_envoys], headers()[n_envoys:]
    expected = header_of(version, ("127.0.0.1", 26001), envoy)
    assert theirs.count(expected) == 1 and all(
        is_nobodys(version, h, "10.83.0.1") for h in theirs if h != expected), theirs
    expected = header_of(version, (CLIENT[4], 26002), (VIP, PORT))
    assert ours.count(expected) == 1 and len(ours) >= 3 and all(
        h == expected or is_nobodys(version, h, "10.82.255.254") or is_nobodys(version, h, "10.83.0.1")
        for h in ours), ours
