# SPDX-License-Identifier: Apache-2.0
"""Both roles with other proxies: Envoy and nginx before Shunt, for a client without TLS, and behind it, before a
backend without TLS. Either side shows a certificate; bodies of megabytes are compared."""

import json

import pytest

import envoy_proxy
from conftest import check_end
from lab_fixtures import module_lab_of
from resources import HTTP_MANAGER, ROUTER, TYPES
from test_tls import BACKEND, UPSTREAM, URL, TlsWorld
from test_tls_peers_relays import SIZE, check_counted, echo
from testbed import PORT, VIP
from tls_returns import check_returns
from tls_table import DOWNSTREAM

VERSIONS = ("1.2", "1.3")
PLAIN_PORT = 8500
BACKENDS = {f"{name}-{version}": 8501 + n for n, (name, version) in enumerate(
    (name, version) for name in ("envoy", "nginx") for version in VERSIONS)}
# In the client's namespace, by what they speak to Shunt. nginx has HTTP/2 to a server only by what it has for gRPC.
FRONTS = {f"{name}-{version}": 8601 + n for n, (name, version) in enumerate(
    (name, version) for name in ("envoy", "nginx", "nginx11") for version in VERSIONS)}
NGINX = """
daemon off; master_process off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.log;
events {{ worker_connections 512; }}
http {{
  access_log off; client_max_body_size 0; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  {servers}
}}
"""
NGINX_BACK = """server {{
    listen {ip}:{port} ssl http2; ssl_protocols TLSv{version}; ssl_certificate {pki}/back.pem;
    ssl_certificate_key {pki}/back.key; ssl_client_certificate {pki}/ca.pem; ssl_verify_client on;
    location / {{ grpc_pass grpc://{ip}:{plain}; }}
  }}
"""
NGINX_FRONT = """server {{
    listen 127.0.0.1:{port} http2; proxy_http_version 1.1;
    {kind}_ssl_protocols TLSv{version}; {kind}_ssl_certificate {pki}/client.pem;
    {kind}_ssl_certificate_key {pki}/client.key; {kind}_ssl_trusted_certificate {pki}/ca.pem; {kind}_ssl_verify on;
    {kind}_ssl_name front.example; {kind}_ssl_server_name on;
    location / {{ {kind}_pass {scheme}://{vip}; }}
  }}
"""


def nginx_configuration(world, folder, role):
    folder.mkdir()
    servers = []
    for name, port in (BACKENDS if role == "server" else FRONTS).items():
        program, version = name.split("-")
        common = {"port": port, "version": version, "pki": world.pki.folder}
        if program == "envoy":
            continue
        if role == "server":
            servers.append(NGINX_BACK.format(ip=BACKEND, plain=PLAIN_PORT, **common))
        else:
            kind, scheme = ("grpc", "grpcs") if program == "nginx" else ("proxy", "https")
            servers.append(NGINX_FRONT.format(kind=kind, scheme=scheme, vip=f"{VIP}:{PORT}", **common))
    path = folder / "nginx.conf"
    path.write_text(NGINX.format(dir=folder, servers="  ".join(servers)))
    return path


def tls_of(world, own, version, **validation):
    """Envoy's common context."""
    number = f"TLSv{version.replace('.', '_')}"
    files = {kind: {"filename": str(world.pki.folder / f"{own}.{end}")}
             for kind, end in (("certificate_chain", "pem"), ("private_key", "key"))}
    return {"tls_params": {"tls_minimum_protocol_version": number, "tls_maximum_protocol_version": number},
            "tls_certificates": [files], "alpn_protocols": ["h2"],
            "validation_context": {"trusted_ca": {"filename": str(world.pki.folder / "ca.pem")}, **validation}}


def socket_of(kind, common, **fields):
    return {"name": "tls", "typed_config": {"@type": kind, "common_tls_context": common, **fields}}


def envoy_listener(name, ip, port, cluster, **fields):
    manager = {
        "@type": HTTP_MANAGER, "stat_prefix": name, "codec_type": "AUTO",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "60s"}}]}]},
        "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}]}
    return {"name": name, "address": envoy_proxy.address_of(ip, port), "filter_chains": [
        {"filters": [{"name": "http", "typed_config": manager}], **fields}]}


def envoy_configuration(world, role):
    listeners, clusters = [], []
    if role == "server":
        clusters.append(envoy_proxy.cluster("plain", [(BACKEND, PLAIN_PORT)]))
    for version in VERSIONS:
        name = f"envoy-{version}"
        if role == "server":
            listeners.append(envoy_listener(name, BACKEND, BACKENDS[name], "plain", transport_socket=socket_of(
                DOWNSTREAM, tls_of(world, "back", version), require_client_certificate=True)))
        else:
            listeners.append(envoy_listener(name, "127.0.0.1", FRONTS[name], name))
            each_its_own = {"common_http_protocol_options": {"max_requests_per_connection": 1}}
            names = [{"san_type": "DNS", "matcher": {"exact": "front.example"}}]
            made = envoy_proxy.cluster(name, [(VIP, PORT)])
            next(iter(made["typed_extension_protocol_options"].values())).update(each_its_own)
            clusters.append({**made, "transport_socket": socket_of(
                UPSTREAM, tls_of(world, "client", version, match_typed_subject_alt_names=names), sni="front.example")})
    return {"node": {"id": role, "cluster": role}, "static_resources": {"listeners": listeners, "clusters": clusters}}


def start_proxies(world, ns, role):
    lab = world.bed.lab
    path = lab.dir / f"envoy-{role}.json"
    path.write_text(json.dumps(envoy_configuration(world, role)))
    envoy = lab.start(ns, f"envoy-{role}", [envoy_proxy.BINARY, "-c", path, "-l", "warning", "--concurrency", "1",
                                            "--disable-hot-restart"])
    nginx = lab.start(ns, f"nginx-{role}", ["nginx", "-c", nginx_configuration(world, lab.dir / f"nginx-{role}", role)])
    for name, port in (BACKENDS if role == "server" else FRONTS).items():
        world.bed.wait_connect(ns, BACKEND if role == "server" else "127.0.0.1", port,
                               envoy if name.startswith("envoy") else nginx)
    return envoy, nginx


@pytest.fixture(name="proxies", scope="module")
def fixture_proxies(request, tmp_path_factory):
    with module_lab_of(request) as lab:
        world = TlsWorld(lab, tmp_path_factory.mktemp("proxies"), mutual=True, names=["web.example"], sni="web.example",
                         peers=BACKENDS)
        root = lab.dir / "www-plain"
        root.mkdir()
        for name in BACKENDS:
            (root / name).symlink_to(lab.dir / "www-tls" / "tls")
        plain = lab.start("backends", "nghttpd-plain", [
            "nghttpd", "--no-tls", "-a", BACKEND, "-d", root, "--echo-upload", PLAIN_PORT])
        world.bed.wait_connect("backends", BACKEND, PLAIN_PORT, plain)
        start_proxies(world, "backends", "server")
        world.start()
        fronts = start_proxies(world, "client", "client")
        yield world
        for proxy in fronts:  # who would keep its connections
            proxy.stop()
        check_end(world.bed)


@pytest.mark.parametrize("name", BACKENDS)
def test_proxies_behind_us_echo_megabytes(proxies, name):
    """TLS-51."""
    own = ["--http2", "--cacert", proxies.pki.folder / "ca.pem", *proxies.own("client")]
    assert echo(proxies, SIZE, f"{URL}/{name}/mark", *own) == "200 2"
    check_counted(proxies, name)


@pytest.mark.parametrize("name", BACKENDS)
def test_proxies_behind_us_resume_our_sessions(proxies, name):
    """TLS-226."""
    check_returns(proxies, name)


def resumed(world):
    return sum(worker["tls_clients"]["resumed"] for worker in world.bed.show_workers())


@pytest.mark.parametrize("name", FRONTS)
def test_proxies_before_us_echo_megabytes_and_resume_their_sessions(proxies, name):
    """TLS-51, TLS-58: each request comes on a connection of its own."""
    before = resumed(proxies)
    for size in (SIZE, 1):
        assert echo(proxies, size, f"http://127.0.0.1:{FRONTS[name]}/tls/mark", "--http2-prior-knowledge") == "200 2"
    assert resumed(proxies) > before
