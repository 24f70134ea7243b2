# SPDX-License-Identifier: Apache-2.0
"""Both roles with GnuTLS and with tlslite-ng, by relays of theirs (tls_relay.py): in front of a client that has no TLS,
and before a backend that has none. Either side shows a certificate; keys change under way; bodies are compared."""

import json
import os
import random
import sys
import time

import pytest

from conftest import check_end
from lab import wait_until
from lab_fixtures import module_lab_of
from test_tls import BACKEND, URL, TlsWorld
from testbed import HERE, PORT, VIP

PLAIN_PORT, FIRST_PORT = 8500, 8501
MEGABYTES = int(os.environ.get("SHUNT_TLS_MEGABYTES", "10"))
SIZE = MEGABYTES << 20
TRANSFER_S = 60 + MEGABYTES // 2
BYTES = {"gnutls": SIZE, "tlslite": 128 << 10}  # tlslite-ng is Python: a hundred KiB a second
UPDATES = 8
RETURNS = {"gnutls": 5, "tlslite": 0}  # with what the last connection left
RETURN_SIZE = 1000
LINES_S = 30
BACKENDS = {f"{library}-{version}": FIRST_PORT + n for n, (library, version) in enumerate(
    (library, version) for library in BYTES for version in ("1.2", "1.3"))}


class Relays(TlsWorld):
    """BACKENDS are relays before an nghttpd without TLS; clients' relays are started by their tests."""

    def __init__(self, lab, folder):
        super().__init__(lab, folder, mutual=True, names=["web.example"], sni="web.example", peers=BACKENDS)
        root = lab.dir / "www-relayed"
        root.mkdir()
        for name in BACKENDS:
            (root / name).symlink_to(lab.dir / "www-tls" / "tls")
        plain = lab.start("backends", "nghttpd-relayed", [
            "nghttpd", "--no-tls", "-a", BACKEND, "-d", root, "--echo-upload", str(PLAIN_PORT)])
        self.bed.wait_connect("backends", BACKEND, PLAIN_PORT, plain)
        self.relays = {}
        for name, port in BACKENDS.items():
            self.relay("backends", name, "server", f"{BACKEND}:{port}", f"{BACKEND}:{PLAIN_PORT}", "h2", "back")

    def relay(self, ns, name, role, listen, to, protocol, own):
        library, version = name.split("-")[:2]
        made = self.bed.lab.start(ns, f"{role}-{name}", [
            sys.executable, HERE / "tls_relay.py", library, role, version, listen, to, protocol, self.pki.folder, own,
            UPDATES])
        self.relays[f"{role}-{name}"] = made
        return made

    def said(self, name):
        """What a relay told of its connections that have ended."""
        return [json.loads(line) for line in self.relays[name].output().splitlines()]


def echo(world, size, url, *words):
    """Sends that much, has it back, and compares; what curl says."""
    asked, heard = world.folder / "asked", world.folder / "heard"
    asked.write_bytes(random.Random(size).randbytes(size))
    done = world.bed.lab.exec("client", [
        "curl", "-sS", "--max-time", str(TRANSFER_S), "-o", str(heard), "-w", "%{http_code} %{http_version}",
        "--data-binary", f"@{asked}", *map(str, words), url], timeout=TRANSFER_S + 10, check=False)
    turned_away = [{name: n for name, n in worker["proxy"].items() if n and name.startswith("clients_")}
                   for worker in world.bed.show_workers()]
    assert done.returncode == 0, (done.stdout, done.stderr, turned_away)
    assert heard.read_bytes() == asked.read_bytes()
    return done.stdout


def check_counted(world, name):
    """The echo: curl has its answer by its content-length and leaves, maybe before the backend's END_STREAM came."""
    def ended():
        shown = world.cluster_shown(name)
        return shown["requests"] and shown["active"] == 0 and shown
    shown = wait_until(ended, LINES_S, "the request's end")
    assert shown["tls"] == "mtls" and shown["ok"] + shown["ended"]["client_lost"] == shown["requests"], shown


@pytest.fixture(name="relays", scope="module")
def fixture_relays(request, tmp_path_factory):
    with module_lab_of(request) as lab:
        world = Relays(lab, tmp_path_factory.mktemp("relays")).start()
        yield world
        check_end(world.bed)


@pytest.mark.parametrize("name", BACKENDS)
def test_backends_of_other_libraries_echo_megabytes(relays, name):
    """TLS-13, TLS-51."""
    size = BYTES[name.split("-")[0]]
    own = ["--http2", "--cacert", relays.pki.folder / "ca.pem", *relays.own("client")]
    started = time.monotonic()
    assert echo(relays, size, f"{URL}/{name}/mark", *own) == "200 2"
    print(f"{name}: {size} bytes each way in {time.monotonic() - started:.1f} s")
    assert relays.said(f"server-{name}") == [], "the connection goes on"
    check_counted(relays, name)


@pytest.mark.parametrize("protocol, words, number", (("h2", ["--http2-prior-knowledge"], "2"),
                                                     ("http/1.1", ["--http1.1"], "1.1")))
@pytest.mark.parametrize("name", BACKENDS)
def test_clients_of_other_libraries_echo_megabytes(relays, name, protocol, words, number):
    """TLS-13, TLS-51, TLS-147, TLS-237: and after a client's end there is close_notify, before FIN."""
    name = f"{name}-{protocol.replace('/', '')}"
    library, version, _ = name.split("-")
    port = 9000 + len(relays.relays)
    relay = relays.relay("client", name, "client", f"127.0.0.1:{port}", f"{VIP}:{PORT}", protocol, "client")
    wait_until(lambda: relay.alive() and relays.bed.lab.exec(
        "client", ["sh", "-c", f"ss -Hltn 'sport = {port}' | grep -q ."], check=False).returncode == 0,
        20, "the relay")
    said = []

    def visit(size):
        before = len(said)
        assert echo(relays, size, f"http://127.0.0.1:{port}/tls/mark", *words) == f"200 {number}"
        said[:] = wait_until(lambda: len(rows := relays.said(f"client-{name}")) > before and rows, LINES_S,
                             "the end of the connection")
    visit(BYTES[library])
    for _ in range(RETURNS[library]):
        visit(RETURN_SIZE)
    pieces = BYTES[library] // 16384
    updates = min(UPDATES, pieces // 8) if version == "1.3" else 0
    assert not any("error" in row for row in said), said
    sent = [row.pop("updates") for row in said]
    assert updates - 1 <= sent[0] <= UPDATES if updates else sent[0] == 0
    assert said == [{"version": version, "protocol": protocol, "resumed": resumed, "notified": True}
                    for resumed in (False, *[True] * RETURNS[library])]
