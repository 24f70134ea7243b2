# SPDX-License-Identifier: Apache-2.0
"""Both roles with Go's crypto/tls and net/http (gotls): either side shows a certificate, sessions are resumed, bodies
of megabytes are compared."""

import json

import pytest

from conftest import check_end
from go_build import go_build
from lab_fixtures import module_lab_of
from test_tls import BACKEND, URL, TlsWorld
from testbed import PORT, VIP
from test_tls_peers_relays import SIZE, TRANSFER_S, echo
from tls_returns import check_returns

BACKENDS = {"go-1.2": 8501, "go-1.3": 8502}

pytestmark = pytest.mark.timeout(300)  # the program is built once


@pytest.fixture(name="gotls", scope="module")
def fixture_gotls(tmp_path_factory):
    return go_build("gotls", ".", tmp_path_factory.mktemp("gotls") / "gotls", timeout=250)


@pytest.fixture(name="secured", scope="module")
def fixture_secured(request, tmp_path_factory, gotls):
    with module_lab_of(request) as lab:
        world = TlsWorld(lab, tmp_path_factory.mktemp("go"), mutual=True, names=["web.example"], sni="web.example",
                         peers=BACKENDS)
        for name, port in BACKENDS.items():
            server = lab.start("backends", name, [
                gotls, "server", f"{BACKEND}:{port}", world.pki.folder, name.split("-")[1]])
            world.bed.wait_connect("backends", BACKEND, port, server)
        yield world.start()
        check_end(world.bed)


@pytest.mark.parametrize("protocol, named", (("h2", "HTTP/2.0"), ("http/1.1", "HTTP/1.1")))
@pytest.mark.parametrize("version", ("1.2", "1.3"))
def test_clients_of_go_resume_sessions_and_echo_megabytes(secured, gotls, version, protocol, named):
    """TLS-51, TLS-58, TLS-147: and a client's close_notify is answered by one."""
    done = secured.bed.lab.exec("client", [
        gotls, "client", f"{VIP}:{PORT}", secured.pki.folder, version, protocol, "/tls/mark", str(SIZE)],
        timeout=2 * TRANSFER_S)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told == [{"status": 200, "proto": named, "version": f"TLS {version}", "alpn": protocol, "same": True,
                     "resumed": resumed, "closed": "close_notify"} for resumed in (False, True)]


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_of_go_echo_megabytes(secured, name):
    """TLS-51."""
    own = ["--http2", "--cacert", secured.pki.folder / "ca.pem", *secured.own("client"), "-D", "-"]
    said = echo(secured, SIZE, f"{URL}/{name}/mark", *own)
    assert said.startswith("HTTP/2 200") and said.endswith("200 2"), said
    assert f"x-tls: TLS {name.split('-')[1]} h2 client" in said, said


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_of_go_resume_our_sessions(secured, name):
    """TLS-226."""
    check_returns(secured, name)
