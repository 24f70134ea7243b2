# SPDX-License-Identifier: Apache-2.0
"""Sessions of TLS that Shunt resumes with its backends: nghttpd, which is OpenSSL with tickets; those of other peers
are in the files of these."""

import json

import pytest

from lab import wait_until
from pki import replace
from test_tls import BACKEND, SIZE, TLS_PORT, TlsWorld
from tls_returns import RETURNS, ended, handshakes_of_returns


def ask(w):
    assert w.curl("/tls/mark") == (0, f"200 {SIZE}")


def kill(w):
    return json.loads(w.bed.shuntctl("kill", "conn", "cluster=tls", "side=backend", "json"))["data"]["ended"]


def sessions(w):
    rows = w.bed.show("certs")["sessions"]
    return rows[0] if rows else {"sessions": 0, "kept": 0}


def test_a_backend_resumes_our_sessions_until_cas_or_our_certificate_change(lab, tmp_path):
    """TLS-226, TLS-228."""
    w = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example").start()
    full, resumed = handshakes_of_returns(w, "tls", lambda: ask(w), 2 * RETURNS)
    assert full <= 1 and resumed >= 2 * RETURNS, (full, resumed)  # the first may be there before
    assert ('grpc_client_tls_handshakes_total{grpc_tls_handshake_result="SUCCESS",'
            f'grpc_tls_handshake_resumed="RESUMED_HANDSHAKE"}} {resumed}') in w.bed.shuntctl("show", "metrics")
    shown = sessions(w)
    assert shown["offered"] == resumed and shown["declined"] == 0 and shown["sessions"] >= 1, shown

    def version():
        return max(c["version"] for c in w.bed.show("certs")["contexts"] if c["role"] == "client")

    changes = [lambda: replace(w.pki.folder / "ca.pem", w.pki.pem("ca") + w.pki.pem("strangers")),
               lambda: w.pki.leaf("client", "ca", "URI:spiffe://a/client")]
    for number, change in enumerate(changes, 1):
        counted = ended(w)
        change()
        wait_until(lambda: version() == 1 + number, 20, "another context")  # pylint: disable=cell-var-from-loop
        dropped = sessions(w)["dropped"]
        kill(w)
        ask(w)
        assert ended(w) == (counted[0] + 1, counted[1])
        wait_until(lambda: kill(w) == 1, 20, "a connection that ends")
        ask(w)
        assert ended(w)[1] > counted[1]
    wait_until(lambda: sessions(w)["dropped"] > dropped, 20, "the sessions of contexts that are gone")


@pytest.mark.parametrize("most", (0, 1))
def test_a_cluster_says_how_many_sessions_are_kept(lab, tmp_path, most):
    """TLS-235."""
    w = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example", max_session_keys=most).start()
    full, resumed = handshakes_of_returns(w, "tls", lambda: ask(w), 10)
    assert (full <= 1 and resumed >= 10) if most else (full >= 10 and resumed == 0), (full, resumed)
    assert sessions(w)["sessions"] <= most and (sessions(w)["kept"] > 0) == (most > 0)


def test_a_backend_that_has_forgotten_its_keys_is_no_error(lab, tmp_path):
    """TLS-230: it has been restarted."""
    w = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example").start()
    ask(w)
    wait_until(lambda: sessions(w)["sessions"] > 0, 20, "a session")
    w.backend.stop()
    w.run_backend("nghttpd-again")
    w.bed.wait_connect("backends", BACKEND, TLS_PORT, w.backend)
    wait_until(lambda: w.curl("/tls/mark")[1] == f"200 {SIZE}", 20, "the backend back")
    assert sessions(w)["declined"] == 1 and ended(w) == (2, 0), (sessions(w), w.bed.show("certs")["handshakes"])
    kill(w)
    ask(w)
    wait_until(lambda: ended(w)[1] == 1, 20, "a session of the new keys")
