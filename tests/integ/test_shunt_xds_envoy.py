# SPDX-License-Identifier: Apache-2.0
"""Envoy takes everything from shunt-xds, by state of the world and by delta ADS, and routes by it.
Loopback only, no namespaces."""

import json
import socket
import subprocess
import time

import pytest

import resources
from envoy_proxy import BINARY, HTTP2, address_of
from resources import ADS, HTTP_MANAGER, LISTENER, ROUTER

grpc = pytest.importorskip("grpc")
from xds_server import WAIT_S, Backend, Proxy, Serve

CALL_TIMEOUT_S = 20
NAME = "web.test"
OPTIONS = {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": HTTP2, "explicit_http_config": {"http2_protocol_options": {}}}}
PROTOCOLS = pytest.mark.parametrize("api_type", ("GRPC", "DELTA_GRPC"))

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="no Envoy")


def bootstrap(api_type, xds_address):
    ip, port = xds_address.split(":")
    member = {"endpoint": {"address": address_of(ip, int(port))}}
    xds = {"name": "xds", "type": "STATIC", "connect_timeout": "10s",
           "typed_extension_protocol_options": OPTIONS,
           "load_assignment": {"cluster_name": "xds", "endpoints": [{"lb_endpoints": [member]}]}}
    grpc_service = {"envoy_grpc": {"cluster_name": "xds"}}
    return {"node": {"id": "envoy", "cluster": "envoy"}, "static_resources": {"clusters": [xds]},
            "dynamic_resources": {"lds_config": ADS, "cds_config": ADS, "ads_config": {
                "api_type": api_type, "transport_api_version": "V3",
                "grpc_services": [grpc_service]}}}


def world(port, weights, backends):
    """All that Envoy needs to listen on the port and spread calls by these weights."""
    manager = {"@type": HTTP_MANAGER, "stat_prefix": "web", "codec_type": "HTTP2",
               "rds": {"config_source": ADS, "route_config_name": "r"},
               "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}]}
    listener = {"@type": LISTENER, "name": "web", "address": address_of("127.0.0.1", port),
                "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]}
    route = resources.route("/", weights)
    found = [listener,
             resources.route_config("r", resources.virtual_host("all", ["*"], route))]
    for name in weights:
        cluster, endpoints = backends[name].resources()
        found += [{**cluster, "connect_timeout": "10s", "typed_extension_protocol_options": OPTIONS},
                  endpoints]
    return found


@pytest.fixture(name="backends", scope="module")
def fixture_backends():
    made = {name: Backend(name) for name in ("blue", "green", "red")}
    yield made
    for backend in made.values():
        backend.server.stop(None)


class Envoy:
    """Envoy with its only configuration from shunt-xds, or from a proxy of it."""

    def __init__(self, path, api_type, backends, proxy_protocol=None):
        # Bound but not listening: nobody else gets the port, and Envoy listens beside it.
        self.reserved = socket.socket()
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.reserved.bind(("127.0.0.1", 0))
        self.port = self.reserved.getsockname()[1]
        self.backends = backends
        self.serve = Serve(path, *world(self.port, {"blue": 1}, backends))
        config = path / "envoy.json"
        self.proxy = proxy_protocol and Proxy(path, self.serve, proxy_protocol)
        address = (self.proxy or self.serve).address
        config.write_text(json.dumps(bootstrap(api_type, address)))
        with open(path / "envoy.log", "wb") as log:
            self.process = subprocess.Popen(
                [BINARY, "-c", config, "-l", "warning", "--concurrency", "1",
                 "--disable-hot-restart"], stderr=log)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        self.call = self.channel.unary_unary("/a.B/C")

    def wait_port(self):
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), WAIT_S).close()
                return
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def set(self, weights):
        self.serve.folder.set(*world(self.port, weights, self.backends))

    def ask(self):
        return self.call(b"", timeout=CALL_TIMEOUT_S).decode()

    def wait_answer(self, name):
        """No call fails until this backend is the one that answers."""
        deadline = time.monotonic() + WAIT_S
        while self.ask() != name:
            assert time.monotonic() < deadline

    def stop(self):
        self.channel.close()
        self.process.kill()
        self.process.wait(WAIT_S)
        self.reserved.close()
        if self.proxy:
            self.proxy.stop()
        self.serve.stop()


@pytest.fixture(name="envoy")
def fixture_envoy(tmp_path, backends, api_type):
    started = Envoy(tmp_path, api_type, backends)
    yield started
    started.stop()


@PROTOCOLS
def test_envoy_routes_by_what_it_is_served(envoy, api_type):
    envoy.wait_port()
    envoy.wait_answer("blue")
    envoy.set({"blue": 1, "green": 1})
    deadline = time.monotonic() + WAIT_S
    while "green" not in (answers := {envoy.ask() for _ in range(50)}):
        assert time.monotonic() < deadline
    assert answers <= {"blue", "green"}
    log = envoy.serve.log.read_text()
    assert ("protocol=delta" in log) == (api_type == "DELTA_GRPC")
    assert "event=nack" not in log


def certificate(path):
    """(certificate, key) of NAME, in PEM."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
         "-keyout", path / "key.pem", "-out", path / "cert.pem"],
        check=True, capture_output=True, timeout=WAIT_S)
    return (path / "cert.pem").read_text(), (path / "key.pem").read_text()


def secured(found, cert, key):
    """The world with TLS by a secret of its own, and hosts named without their port."""
    (listener,) = [r for r in found if r["@type"] == LISTENER]
    (routes,) = [r for r in found if r["@type"] == resources.ROUTE_CONFIG]
    chain = listener["filter_chains"][0]
    chain["filters"][0]["typed_config"]["stripAnyHostPort"] = True
    chain["transport_socket"] = {"name": "tls", "typed_config": {
        "@type": resources.TYPES + "extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {
            "alpn_protocols": ["h2"],
            "tls_certificate_sds_secret_configs": [{"name": "web", "sds_config": ADS}]}}}
    listener["perConnectionBufferLimitBytes"] = 32768
    routes["virtual_hosts"][0]["domains"] = [NAME]
    secret = {"@type": resources.SECRET, "name": "web", "tls_certificate": {
        "certificate_chain": {"inline_string": cert}, "private_key": {"inline_string": key}}}
    return [*found, secret]


@PROTOCOLS
def test_envoy_takes_a_secret_and_fields_that_shunt_does_not_know(envoy, api_type, tmp_path):
    envoy.wait_port()
    envoy.wait_answer("blue")
    cert, key = certificate(tmp_path)
    found = world(envoy.port, {"green": 1}, envoy.backends)
    envoy.serve.change(*secured(found, cert, key))
    options = [("grpc.ssl_target_name_override", NAME),
               ("grpc.default_authority", f"{NAME}:8443")]
    with grpc.secure_channel(f"127.0.0.1:{envoy.port}",
                             grpc.ssl_channel_credentials(cert.encode()), options) as channel:
        call = channel.unary_unary("/a.B/C")
        assert call(b"", timeout=WAIT_S, wait_for_ready=True) == b"green"
    log = envoy.serve.log.read_text()
    assert "event=nack" not in log and "left out" not in log


@PROTOCOLS
def test_all_clusters_are_replaced_without_a_failed_call(envoy, api_type):
    envoy.wait_port()
    envoy.wait_answer("blue")
    envoy.set({"red": 1})
    envoy.wait_answer("red")
    until = time.monotonic() + 3  # past the moments when cluster and endpoints are taken away
    while time.monotonic() < until:
        assert envoy.ask() == "red"
    log = envoy.serve.log.read_text()
    assert "event=nack" not in log
    assert ("removed=1" in log) == (api_type == "DELTA_GRPC")


@PROTOCOLS
def test_envoy_goes_on_while_the_server_is_gone_and_follows_it_again(envoy, api_type):
    envoy.wait_port()
    envoy.wait_answer("blue")
    envoy.serve.kill()
    for _ in range(50):
        assert envoy.ask() == "blue"
    # In SotW what a client brings along from an earlier stream can't be known: blue stays there.
    envoy.set({"blue": 1, "green": 1} if api_type == "GRPC" else {"green": 1})
    envoy.serve.start()
    envoy.wait_answer("green")
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert envoy.ask() in (("blue", "green") if api_type == "GRPC" else ("green",))
    assert "event=nack" not in envoy.serve.log.read_text()
