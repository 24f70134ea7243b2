# SPDX-License-Identifier: Apache-2.0
"""Peers with something wrong, openssl's and Python's, on both sides of a running daemon: each is refused and named by
gRFC A118's word, and whoever is in order is served meanwhile."""

import re
import sys
import time

import pytest

import resources
from lab import wait_until
from test_tls import BACKEND, SIZE, TLS_PORT, TlsWorld
from testbed import HERE, PORT, VIP

SEEN_S = 40  # a connection has 20 s
LENIENT = "10.82.1.8"  # as BACKEND, for clients without a certificate
WEB = "DNS:web.example"
NAMES = ["web.example"]
EXPIRED, EARLY = (-3, -1), (1, 3)
JUDGES = ("-alpn", "h2", "-Verify", "4", "-verify_return_error")  # of s_server: wants a certificate

# What is wrong with a backend: (name, options of openssl's s_server, its certificate, whether we show one of ours,
# A118's word). The certificate's words are those of Pki.issue(), of the authority "ca" unless it says another. Without
# options there is no s_server, but something that hangs up.
BACKENDS = (
    ("authority", (), {"authority": "strangers"}, True, "CERTIFICATE_AUTHORITY_INVALID"),
    ("name", (), {"sans": "DNS:other.example"}, True, "CERTIFICATE_HOSTNAME_MISMATCH"),
    ("expired", (), {"dates": EXPIRED}, True, "CERTIFICATE_EXPIRED"),
    ("expired-1.2", ("-tls1_2",), {"dates": EXPIRED}, True, "CERTIFICATE_EXPIRED"),
    ("early", (), {"dates": EARLY}, True, "CERTIFICATE_NOT_YET_VALID"),
    ("revoked", (), {}, True, "CERTIFICATE_REVOKED"),
    ("usage", (), {"usage": "clientAuth"}, True, "CERTIFICATE_MALFORMED"),
    ("other-protocol", ("-alpn", "http/1.1"), {}, True, "NO_APPLICATION_PROTOCOL"),
    ("no-protocol", (), {}, True, "NO_APPLICATION_PROTOCOL"),
    ("version", ("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), {}, True, "PROTOCOL_VERSION_UNSUPPORTED"),
    ("distrust-1.2", (*JUDGES, "-tls1_2", "-CAfile", "strangers.pem"), {}, True, "CERTIFICATE_VERIFICATION_FAILED"),
    ("distrust-1.3", (*JUDGES, "-CAfile", "strangers.pem"), {}, True, "CERTIFICATE_VERIFICATION_FAILED"),
    ("wants-ours", (*JUDGES, "-CAfile", "ca.pem"), {}, False, "CERTIFICATE_VERIFICATION_FAILED"),
    ("hangs-up", None, None, True, "PEER_CONNECTION_CLOSED"),
)

# The same of a client: (name, options of openssl's s_client, its certificate, A118's word).
CLIENTS = (
    ("none", (), None, "CERTIFICATE_VERIFICATION_FAILED"),
    ("none-1.2", ("-tls1_2",), None, "CERTIFICATE_VERIFICATION_FAILED"),
    ("authority", (), {"authority": "strangers"}, "CERTIFICATE_AUTHORITY_INVALID"),
    ("expired", (), {"dates": EXPIRED}, "CERTIFICATE_EXPIRED"),
    ("early", ("-tls1_2",), {"dates": EARLY}, "CERTIFICATE_NOT_YET_VALID"),
    ("revoked", (), {}, "CERTIFICATE_REVOKED"),
    ("usage", (), {"usage": "serverAuth"}, "CERTIFICATE_MALFORMED"),
    ("protocol", ("-alpn", "x"), {}, "NO_APPLICATION_PROTOCOL"),
    ("version", ("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), {}, "PROTOCOL_VERSION_UNSUPPORTED"),
    ("cipher", ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"), {}, "CIPHER_SUITE_MISMATCH"),
    ("distrusts-us", ("-CAfile", "strangers.pem", "-verify_return_error"), {}, "CERTIFICATE_VERIFICATION_FAILED"),
    ("fallback", ("-tls1_2", "-fallback_scsv"), {}, "INAPPROPRIATE_FALLBACK"),
)


class RefusalWorld(TlsWorld):
    """Each cluster has the good backend, and one with something wrong at an address of its own."""

    def __init__(self, lab, folder):
        super().__init__(lab, folder, mutual=True, sans=WEB)
        self.bed.add_backend_address(LENIENT)
        self.bed.lab.start("backends", "nghttpd-lenient", [
            "nghttpd", "-a", LENIENT, "-d", self.bed.lab.dir / "www-tls", str(TLS_PORT),
            self.pki.folder / "back.key", self.pki.folder / "back.pem"])
        self.crls = folder / "crls"
        self.crls.mkdir()
        self.addresses = {}
        self.bed.settings = f"tls: {{crl_directory: {self.crls}, crl_refresh_s: 1}}\n"

    def revoke(self, *names):
        (self.crls / "ca.pem").write_text(self.pki.crl("ca", *names))

    def issue(self, name, authority="ca", **words):
        self.pki.issue(name, authority, **words)

    def plant(self, name, options, certificate, shows_ours, _word):
        ip = self.addresses[name] = f"10.82.2.{len(self.addresses) + 1}"
        self.bed.add_backend_address(ip)
        if options is None:
            argv = [sys.executable, HERE / "hang_up.py", ip, TLS_PORT]
        else:
            self.issue(f"bad-{name}", **{"sans": WEB, **certificate})
            files = [self.pki.folder / o if o.endswith(".pem") else o for o in options]
            argv = ["openssl", "s_server", "-accept", f"{ip}:{TLS_PORT}", "-quiet", "-naccept", "1000",
                    "-cert", self.pki.folder / f"bad-{name}.pem", "-key", self.pki.folder / f"bad-{name}.key",
                    *files]
        self.bed.lab.start("backends", f"bad-{name}", argv)
        made = self.cluster(names=NAMES)
        made["name"] = f"bad-{name}"
        if not shows_ours:
            del made["transport_socket"]["typed_config"]["common_tls_context"]["tls_certificate_provider_instance"]
        good = BACKEND if shows_ours else LENIENT
        self.world.extra += (made, resources.endpoints(made["name"], (ip, TLS_PORT), (good, TLS_PORT)))
        (self.bed.lab.dir / "www-tls" / "tls" / name).write_bytes(b"#" * SIZE)
        way = resources.route({"path": f"/tls/{name}"}, made["name"])
        self.world.extra_routes = (way, *self.world.extra_routes)

    def ask(self, path):
        return self.curl(path, *self.own("client"))

    def endpoint(self, name):
        shown = self.bed.show("endpoints")
        rows = shown["endpoints"] if isinstance(shown, dict) else shown
        return next(e for e in rows if e["cluster"] == f"bad-{name}" and self.addresses[name] in str(e["endpoint"]))

    def counted(self, side, word):
        """Handshakes that the metrics have by this word."""
        text = self.bed.shuntctl("show", "metrics")
        found = re.findall(rf'^grpc_{side}_tls_handshakes_total{{grpc_tls_handshake_result="{word}",'
                           r'grpc_tls_handshake_resumed="FULL_HANDSHAKE"} (\d+)$', text, re.M)
        assert len(found) == 1, (word, text)
        return int(found[0])

    def handshakes(self, side, word):
        """The same as `show certs` has it."""
        return sum(row["handshakes"] for row in self.bed.show("certs")["handshakes"]
                   if (row["with"], row["tls_result"]) == (side, word))


@pytest.fixture(name="refusals")
def fixture_refusals(lab, tmp_path):
    return RefusalWorld(lab, tmp_path)


def test_backends_with_something_wrong_are_named_and_others_serve(refusals):
    """TLS-193, TLS-194; TLS-197: s_server hangs up behind its alert."""
    w = refusals
    for row in BACKENDS:
        w.plant(*row)
    w.revoke("bad-revoked")
    w.world.set_weights(75, 25)
    w.start()
    for name, *_ in BACKENDS:
        assert w.ask(f"/tls/{name}") == (0, f"200 {SIZE}"), name
    wrong = {}
    for name, _, _, _, word in BACKENDS:
        def is_named():
            wrong[name] = w.endpoint(name)
            return wrong[name]["tls_result"] == word  # pylint: disable=cell-var-from-loop
        try:
            wait_until(is_named, SEEN_S, name)
        except TimeoutError:
            continue
        assert wrong.pop(name)["error"].startswith(f"{w.addresses[name]}:{TLS_PORT}: TLS: "), name
    assert not wrong, {name: e["error"] for name, e in wrong.items()}
    by_alert = {"distrust-1.3", "wants-ours"}  # their handshakes were over
    for name, _, _, _, word in BACKENDS:
        if name not in by_alert:
            assert w.counted("client", word) > 0 and w.handshakes("backends", word) > 0, (name, word)
        assert w.ask(f"/tls/{name}") == (0, f"200 {SIZE}"), name
    shown = w.bed.show("clusters")["endpoints"]
    assert {e["tls_result"] for e in shown} >= {row[-1] for row in BACKENDS}, shown


def test_a_backend_that_resets_behind_its_alert_is_named_by_that_each_time(refusals):
    """TLS-197: nghttpd resets, since what we have said by then is behind its refusal."""
    w, errors = refusals, set()
    ip = w.addresses["strict"] = "10.82.2.1"
    w.bed.add_backend_address(ip)
    w.bed.lab.start("backends", "nghttpd-strict", [
        "nghttpd", "-a", ip, "--verify-client", str(TLS_PORT), w.pki.folder / "back.key", w.pki.folder / "back.pem"])
    made = w.cluster(names=NAMES)
    made["name"] = "bad-strict"
    del made["transport_socket"]["typed_config"]["common_tls_context"]["tls_certificate_provider_instance"]
    w.world.extra += (made, resources.endpoints(made["name"], (ip, TLS_PORT)))
    w.world.extra_routes = (resources.route({"path": "/tls/strict"}, made["name"]), *w.world.extra_routes)
    w.world.set_weights(75, 25)
    w.start()
    w.ask("/tls/strict")

    def refused():
        return {e["error"] for e in w.bed.show("clusters")["endpoints"] if e["cluster"] == "bad-strict"} - {""}

    wait_until(refused, SEEN_S, "a first refusal")
    for _ in range(10):
        w.bed.shuntctl("reconnect", "bad-strict")
        time.sleep(0.3)
        errors |= refused()
    assert errors == {f"{ip}:{TLS_PORT}: TLS: its alert certificate_required (116)"}


def client_argv(w, name, options, certificate):
    own = []
    if certificate is not None:
        w.issue(f"bad-{name}", **{"sans": "DNS:client", **certificate})
        own = ["-cert", w.pki.folder / f"bad-{name}.pem", "-key", w.pki.folder / f"bad-{name}.key"]
    files = [w.pki.folder / o if o.endswith(".pem") else o for o in options]
    alpn = [] if "-alpn" in options else ["-alpn", "h2"]
    return ["openssl", "s_client", "-connect", f"{VIP}:{PORT}", *alpn, *own, *files]


def test_clients_with_something_wrong_are_named_and_others_served(refusals):
    """TLS-193, TLS-194."""
    w = refusals
    w.issue("bad-revoked", sans="DNS:client")
    w.revoke("bad-revoked")
    argvs = {name: client_argv(w, name, options, None if name == "revoked" else certificate)
             for name, options, certificate, _ in CLIENTS}
    argvs["revoked"] += ["-cert", w.pki.folder / "bad-revoked.pem", "-key", w.pki.folder / "bad-revoked.key"]
    w.start()
    for name, _, _, word in CLIENTS:
        before = w.counted("server", word)
        w.bed.lab.exec("client", ["timeout", "25", *argvs[name]], check=False)
        try:
            wait_until(lambda: w.counted("server", word) == before + 1, 30, word)  # pylint: disable=cell-var-from-loop
        except TimeoutError:
            pytest.fail(f"{name}: {w.bed.show('certs')['handshakes']}")
        assert w.handshakes("clients", word) == before + 1, name
        assert w.ask("/mark")[0] == 0, name
    assert w.counted("server", "SUCCESS") >= len(CLIENTS)


def test_nobody_is_accepted_before_the_crls_were_read(refusals):
    """TLS-190: the directory comes late, and one certificate is revoked."""
    w = refusals
    w.issue("revoked", sans="DNS:client")
    w.crls.rmdir()
    w.start()
    assert w.ask("/mark")[0] != 0
    error = "crl_directory: has not been read completely yet"
    shown = w.bed.show("certs")
    assert {c["state"] for c in shown["contexts"]} == {"refusing"}, shown["contexts"]
    assert all(error in c["error"] for c in shown["contexts"]), shown["contexts"]
    assert w.bed.show("info")["frontends"][0]["tls_error"] == error
    assert 'shunt_tls_contexts{role="server",state="refusing"} 1' in w.bed.shuntctl("show", "metrics")
    assert f'error="{error}"' in w.bed.daemon.output()

    w.crls.mkdir()
    w.revoke("revoked")
    wait_until(lambda: w.ask("/mark")[0] == 0, 30, "a client that is served")
    assert w.curl("/mark", *w.own("revoked"))[0] != 0
    wait_until(lambda: w.ask("/tls/mark") == (0, f"200 {SIZE}"), 30, "a backend that is connected to")
