# SPDX-License-Identifier: Apache-2.0
"""TLS of a frontend and of clusters with peers of others: curl and h2load in front, nghttpd behind. Who is refused,
and by what name; certificates that change each second under load."""

import json
import os
import time

import pytest

import resources
from lab import command, wait_until
from pki import Pki, replace
from test_certs import CA, CERT, KEY, MAP
from testbed import EXAMPLE, PORT, VIP
from world import World

URL = f"https://{VIP}:{PORT}"
BACKEND, TLS_PORT, SIZE = "10.82.1.9", 8443, 700
UPSTREAM = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
ROTATIONS = int(os.environ.get("SHUNT_ROTATIONS", "10"))
REFRESH_S = 1


def provider(**files):
    return {"plugin_name": "file_watcher",
            "config": {**{name: str(path) for name, path in files.items()}, "refresh_interval": f"{REFRESH_S}s"}}


class TlsWorld:
    """The standard world; its frontend has TLS, and /tls/ goes to nghttpd with TLS on BACKEND. peers: {name: port} of
    more servers with TLS on BACKEND, each with a route /NAME/ and a cluster like that of nghttpd. key: everybody's, as
    pki.new_key() takes it."""

    def __init__(self, lab, folder, mutual=False, sans="DNS:web.example", peers=(), bed=None, key=None, **context):
        self.pki = Pki(folder / "pki")
        for name in ("ca", "strangers"):
            self.pki.authority(name, key)
        for name, authority, names in (
                ("front", "ca", f"DNS:front.example,IP:{VIP}"), ("back", "ca", sans),
                ("client", "ca", "URI:spiffe://a/client"), ("stranger", "strangers", "DNS:stranger")):
            self.pki.leaf(name, authority, names, key)
        self.folder = folder
        self.backend = None
        ports = {"tls": TLS_PORT, **dict(peers)}
        self.world = World(lab, extra_routes=[resources.route(f"/{name}/", name) for name in ports], extra=[
            made for name, port in ports.items()
            for made in (self.cluster(name, **context), resources.endpoints(name, (BACKEND, port)))],
            **(bed or {}))
        self.bed = self.world.bed
        self.start_backend()
        mtls = ", ca: ca, require_client_certificate: true" if mutual else ""
        self.bed.frontend_settings = f"tls: {{certificate: front{mtls}}}"

    @staticmethod
    def cluster(name="tls", sni="", names=(), ca="ca", **fields):
        trust = {"ca_certificate_provider_instance": {"instance_name": ca}}
        if names:
            trust["match_subject_alt_names"] = [{"exact": name} for name in names]
        common = {"validation_context": trust,
                  "tls_certificate_provider_instance": {"instance_name": "client"}}
        made = resources.cluster(name)
        made["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": {
            "@type": UPSTREAM, "common_tls_context": common, "sni": sni, **fields}}
        return made

    def start_backend(self):
        self.bed.add_backend_address(BACKEND)
        root = self.bed.lab.dir / "www-tls"
        (root / "tls").mkdir(parents=True)
        (root / "tls" / "mark").write_bytes(b"#" * SIZE)
        self.run_backend("nghttpd-tls")

    def run_backend(self, name):
        self.backend = self.bed.lab.start("backends", name, [
            "nghttpd", "-a", BACKEND, "-d", self.bed.lab.dir / "www-tls", "-m", "1000", "--echo-upload",
            "--verify-client", str(TLS_PORT), self.pki.folder / "back.key", self.pki.folder / "back.pem"],
            env={"SSL_CERT_FILE": str(self.pki.folder / "ca.pem")})

    def start(self, **more_providers):
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        at = self.pki.folder
        made["certificate_providers"] = {
            "front": provider(**{CERT: at / "front.pem", KEY: at / "front.key"}),
            "client": provider(**{CERT: at / "client.pem", KEY: at / "client.key"}),
            "ca": provider(**{CA: at / "ca.pem"}),
            "strangers": provider(**{CA: at / "strangers.pem"}),
            "missing": provider(**{CA: at / "nothing.pem"}), **more_providers}
        path = self.folder / "bootstrap.json"
        path.write_text(json.dumps(made))
        self.bed.start_xds()
        self.bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})
        return self

    def curl(self, path, *words, ca="ca"):
        """(exit code, what it printed: the status and the size)."""
        done = self.bed.lab.exec("client", [
            "curl", "-sS", "--http2", "--max-time", "30", "--cacert", str(self.pki.folder / f"{ca}.pem"),
            "-o", "/dev/null", "-w", "%{http_code} %{size_download}", *map(str, words), URL + path], check=False)
        return done.returncode, done.stdout + done.stderr

    def own(self, name):
        return ["--cert", self.pki.folder / f"{name}.pem", "--key", self.pki.folder / f"{name}.key"]

    def cluster_shown(self, name="tls"):
        return next(c for c in self.bed.show("clusters")["clusters"] if c["cluster"] == name)


@pytest.fixture(name="make")
def fixture_make(lab, tmp_path):
    def make(**arguments):
        return TlsWorld(lab, tmp_path, **arguments).start()
    return make


@pytest.mark.parametrize("key", (None, "rsa:2048", "ed25519"))
@pytest.mark.parametrize("version", ("1.2", "1.3"))
def test_tls_on_both_sides_carries_requests(make, version, key):
    """TLS-51, TLS-160: a frontend with TLS speaks nothing else."""
    w = make(names=["web.example"], sni="web.example", key=key)
    limits = [f"--tlsv{version}", "--tls-max", version]
    assert w.curl("/mark", *limits)[0] == 0
    assert w.curl("/tls/mark", *limits) == (0, f"200 {SIZE}")
    assert w.curl("/tls/mark", *limits, ca="strangers")[0] == 60  # curl does not know the CA
    plain = w.bed.lab.exec("client", ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "30",
                                      f"http://{VIP}:{PORT}/mark"], check=False)
    assert plain.returncode != 0, plain.stdout
    assert w.cluster_shown()["tls"] == "mtls"


def test_clients_without_a_good_certificate_are_refused(make):
    w = make(mutual=True)
    assert w.curl("/mark", *w.own("client"))[0] == 0
    for words in ([], w.own("stranger")):
        code, said = w.curl("/mark", *words)
        assert code in (16, 35, 55, 56, 92), (code, said)


def test_clients_are_judged_by_the_bundle_of_their_trust_domain(lab, tmp_path):
    """TLS-57, TLS-108: a CA that another domain trusts is nobody's here, and a map changes as other files do."""
    w = TlsWorld(lab, tmp_path)
    clients = {"of-a": ("ca", "a"), "of-b": ("strangers", "b"), "forged": ("strangers", "a"), "of-c": ("ca", "c")}
    for name, (authority, domain) in clients.items():
        w.pki.leaf(name, authority, f"URI:spiffe://{domain}/client")
    bundles = w.pki.folder / "bundles.json"

    def write(**domains):
        keys = {domain: [{"kty": "EC", "use": "x509-svid", "x5c": ["".join(w.pki.pem(name).splitlines()[1:-1])]}]
                for domain, name in domains.items()}
        replace(bundles, json.dumps({"trust_domains": {domain: {"keys": key} for domain, key in keys.items()}}))

    def served():
        return {name for name in clients if w.curl("/mark", *w.own(name))[0] == 0}
    write(a="ca", b="strangers")
    w.bed.frontend_settings = "tls: {certificate: front, ca: bundles, require_client_certificate: true}"
    w.start(bundles=provider(**{MAP: bundles}))
    assert served() == {"of-a", "of-b"}
    write(a="ca", c="ca")
    wait_until(lambda: served() == {"of-a", "of-c"}, 20, "the other bundles")
    assert w.curl("/mark")[0] != 0


@pytest.mark.parametrize("context, text", (
    ({"ca": "strangers"}, "unknown_ca"),
    ({"names": ["other.example"]}, "certificate_name"),
    ({"sni": "other.example", "auto_sni_san_validation": True}, "certificate_name"),
    ({"ca": "missing"}, ""),
))
def test_a_backend_that_is_not_trusted_is_named(make, context, text):
    w = make(**context)
    assert w.curl("/tls/mark")[1].startswith("503 ")
    wait_until(lambda: text in str(w.bed.show("clusters")), 30, f"{text} in show clusters")
    if context.get("ca") == "missing":
        detail = w.cluster_shown()
        contexts = w.bed.show("certs")["contexts"]
        assert any(c["state"] == "refusing" and "has nothing yet" in c["error"] for c in contexts), contexts
        assert detail["state"] == "TRANSIENT_FAILURE", detail
    assert w.curl("/mark")[0] == 0  # others go on


def serial(w):
    """Of the certificate that a new client sees."""
    done = w.bed.lab.exec("client", ["openssl", "s_client", "-connect", f"{VIP}:{PORT}", "-alpn", "h2"], check=False)
    path = w.folder / "seen.pem"
    path.write_text(done.stdout)
    return command(["openssl", "x509", "-in", path, "-noout", "-serial"]).stdout


def test_certificates_change_each_second_under_load(make):
    """TLS-163: no request fails, and a new handshake has the new certificate within the refresh and a second."""
    w = make(names=["web.example"])
    loads = [w.bed.start_h2load(f"load-{n}", path=path, url=URL, seconds=ROTATIONS + 10, clients=4, streams=4,
                                rate=100)
             for n, path in enumerate(("/mark", "/tls/mark"))]
    slowest = 0
    for n in range(ROTATIONS):
        began = time.monotonic()
        for name, sans in (("front", f"DNS:front.example,IP:{VIP}"), ("client", "URI:spiffe://a/client")):
            w.pki.leaf(f"{name}-{n}", "ca", sans)
            replace(w.pki.folder / f"{name}.key", w.pki.key(f"{name}-{n}"))
            replace(w.pki.folder / f"{name}.pem", w.pki.pem(f"{name}-{n}"))
        changed = time.monotonic()
        wanted = w.pki.run("x509", "-in", f"front-{n}.pem", "-noout", "-serial")
        wait_until(lambda: serial(w) == wanted, 20, "the new certificate")  # pylint: disable=cell-var-from-loop
        slowest = max(slowest, time.monotonic() - changed)
        assert w.curl("/tls/mark") == (0, f"200 {SIZE}")
        time.sleep(max(0, 1 - (time.monotonic() - began)))
    for load in loads:
        report = w.bed.h2load_report(load)
        assert report.perfect, report
    print(f"a new handshake had the new certificate after {slowest:.2f} s at most")
