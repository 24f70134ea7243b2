# SPDX-License-Identifier: Apache-2.0
"""shunt-xds proxy with TLS on both of its sides, all with certificates: gRPC C-core's clients before it, shunt-xds
serve behind it, each side with authorities of its own. Loopback only, no namespaces."""

import json
import re
import socket
import ssl

import pytest

from pki import Pki, replace
from resources import CLUSTER, cluster

grpc = pytest.importorskip("grpc")
from envoy.config.cluster.v3 import cluster_pb2
from test_shunt_xds_proxy import UPSTREAM, count_answers
from xds_server import BOOTSTRAP_ARG, WAIT_S, Backend, Proxy, Serve, Sotw, world


def authorities(folder):
    """`up` is that of the server and of the proxy as its client, `down` that of the proxy and of its clients."""
    made = Pki(folder)
    for name in ("up", "down"):
        made.authority(name)
    made.leaf("server", "up")
    made.leaf("asker", "up", sans="DNS:asker")
    made.leaf("proxy", "down")
    made.leaf("client", "down", sans="DNS:client")
    return made


@pytest.fixture(name="made")
def fixture_made(tmp_path):
    made = authorities(tmp_path / "pki")
    made.leaf("stranger", made.authority("alien"), sans="DNS:stranger")
    return made


def serving_with(made, name, client_ca):
    """Words of a command line."""
    return ["--certificate", made.folder / f"{name}.pem", "--key", made.folder / f"{name}.key",
            "--client-ca", made.folder / f"{client_ca}.pem"]


class Asked:
    """A server as who has these files asks it: a bootstrap of it."""

    def __init__(self, server, made, ca, name):
        self.server = server
        self.config = {"ca_certificate_file": str(made.folder / f"{ca}.pem"), "refresh_interval": "1s",
                       "certificate_file": str(made.folder / f"{name}.pem"),
                       "private_key_file": str(made.folder / f"{name}.key")}

    def bootstrap(self, node="test"):
        made = self.server.bootstrap(node)
        made["xds_servers"][0]["channel_creds"] = [{"type": "tls", "config": self.config}]
        return made


@pytest.fixture(name="backend", scope="module")
def fixture_backend():
    made = Backend("blue")
    yield made
    made.server.stop(None)


@pytest.fixture(name="serve")
def fixture_serve(tmp_path, made, backend):
    started = Serve(tmp_path, *world({"blue": backend}, {"blue": 1}), words=serving_with(made, "server", "up"))
    yield started
    started.stop()


@pytest.fixture(name="start")
def fixture_start(tmp_path, serve, made):
    """start(protocol, ca, name): a proxy that asks the server with these files."""
    started = []

    def start(upstream="sotw", ca="up", name="asker"):
        started.append(Proxy(tmp_path, Asked(serve, made, ca, name), upstream,
                             words=serving_with(made, "proxy", "down")))
        return started[-1]
    yield start
    for proxy in started:
        proxy.stop()


def client_of(proxy, made, ca="down", name="client"):
    files = [made.pem(ca)] + ([made.key(name), made.pem(name)] if name else [])
    return Sotw(proxy.address, credentials=grpc.ssl_channel_credentials(*(text.encode() for text in files)))


def names_of(response):
    return sorted(name for name in ("blue", "late") for entry in response.resources
                  if cluster_pb2.Cluster.FromString(entry.value).name == name)


def shown_certificate(proxy, made):
    """What the proxy shows to a new connection, in PEM's bytes."""
    context = ssl.create_default_context(cadata=made.pem("down"))
    context.load_cert_chain(made.folder / "client.pem", made.folder / "client.key")
    context.set_alpn_protocols(["h2"])
    host, port = proxy.address.split(":")
    with socket.create_connection((host, int(port)), WAIT_S) as raw, \
            context.wrap_socket(raw, server_hostname=host) as wrapped:
        return wrapped.getpeercert(binary_form=True)


@UPSTREAM
def test_grpc_takes_its_routes_with_certificates_on_all_ways(start, serve, made, upstream):
    """TLS-257."""
    proxy = start(upstream)
    bootstrap = json.dumps(Asked(proxy, made, "down", "client").bootstrap())
    with grpc.insecure_channel("xds:///web", [(BOOTSTRAP_ARG, bootstrap)]) as channel:
        assert count_answers(channel.unary_unary("/a.B/C"), 20) == {"blue": 20}
    assert "event=nack" not in proxy.log.read_text() + serve.log.read_text()


@UPSTREAM
@pytest.mark.parametrize("ca, name, text", (
    ("alien", "asker", r"UNAVAILABLE.*certificate verify failed"),
    ("up", "stranger", r"UNAVAILABLE"),
), ids=("a server of an unknown authority", "our certificate is of an unknown authority"))
def test_upstream_that_is_not_trusted_is_named_and_reached_once_mended(start, serve, made, upstream, ca, name, text):
    """TLS-258: of the proxy's upstream nothing is passed on before."""
    proxy = start(upstream, ca, name)
    with client_of(proxy, made) as client:
        client.subscribe(CLUSTER, "blue")
        proxy.wait_match(rf"xDS server {re.escape(serve.address)} .*{text}")
        client.assert_quiet()
        replace(made.folder / f"{ca}.pem", made.pem("up"))
        replace(made.folder / f"{name}.key", made.key("asker"))
        replace(made.folder / f"{name}.pem", made.pem("asker"))
        assert names_of(client.take()) == ["blue"]


@pytest.mark.parametrize("ca, name, text", (
    ("alien", "client", "CERTIFICATE_VERIFY_FAILED"), ("down", None, ""), ("down", "stranger", "")),
    ids=("the proxy is of an unknown authority", "a client without a certificate", "one of an unknown authority"))
def test_client_that_is_not_trusted_is_refused_and_others_are_served(start, made, ca, name, text):
    """TLS-257."""
    proxy = start()
    with client_of(proxy, made, ca, name) as stranger, client_of(proxy, made) as client:
        stranger.subscribe(CLUSTER, "blue")
        assert stranger.next() is None
        assert stranger.call.code() == grpc.StatusCode.UNAVAILABLE
        assert text in stranger.call.details(), stranger.call.details()
        client.subscribe(CLUSTER, "blue")
        assert names_of(client.take()) == ["blue"]


def put(made, other, *names):
    for name in names:
        replace(made.folder / f"{name}.key", other.key(name))
        replace(made.folder / f"{name}.pem", other.pem(name))


@UPSTREAM
def test_new_authorities_on_both_sides_need_no_restart(start, serve, made, tmp_path, upstream):
    """TLS-257, TLS-258: certificates and authorities change under the same names, and no stream of a client ends."""
    proxy = start(upstream)
    other = authorities(tmp_path / "other")
    with client_of(proxy, made) as early:
        early.subscribe(CLUSTER, "blue", "late")
        assert names_of(early.take()) == ["blue"]
        before = shown_certificate(proxy, made)
        old = made.pem("down"), made.key("client"), made.pem("client")
        put(made, other, "down", "proxy", "client")
        after = shown_certificate(proxy, made)
        assert before != after == ssl.PEM_cert_to_DER_cert(other.pem("proxy"))
        with Sotw(proxy.address, credentials=grpc.ssl_channel_credentials(*(t.encode() for t in old))) as outdated:
            outdated.subscribe(CLUSTER, "blue")
            assert outdated.next() is None and outdated.call.code() == grpc.StatusCode.UNAVAILABLE

        serve.kill()
        put(made, other, "up", "server", "asker")
        serve.folder.put(cluster("late"))
        serve.start()
        assert names_of(early.take()) == ["blue", "late"]
        with client_of(proxy, made) as late:
            late.subscribe(CLUSTER, "late")
            assert names_of(late.take()) == ["late"]
