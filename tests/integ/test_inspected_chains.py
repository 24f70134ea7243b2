# SPDX-License-Identifier: Apache-2.0
"""Filter chains that what a client says first decides upon, by Envoy's tls_inspector."""

import json
import pathlib
import random
import sys

import pytest

import envoy_proxy
from lab import wait_until
from pki import Pki
from test_certs import CERT, KEY
from resources import HTTP_MANAGER, ROUTER
from test_chains import TAKES_S, Chains, secured
from test_tls import provider
from testbed import EXAMPLE, PORT, VIP
from tls_table import DOWNSTREAM
from world import SIZES

AGENT = pathlib.Path(__file__).with_name("hello_agent.py")
INSPECTOR = {"name": "tls", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}}

def inspector(**fields):
    return {**INSPECTOR, "typed_config": INSPECTOR["typed_config"] | fields}


CERTIFICATES = {"front": "DNS:front.test", "one": "DNS:one.test", "wild": "DNS:*.wild.test",
                **{f"of-{n}": f"DNS:of-{n}.test" for n in range(8)}}
NAMES = ["a.test", "b.a.test", "*.test", "*.a.test", "*.b.a.test", "test", "B.TEST"]
ASKED = ["a.test", "A.Test", "b.a.test", "c.b.a.test", "x.test", "test", "b.test", "other", ""]
PROTOCOLS = ["h2", "http/1.1", "other"]
OFFERED = [[], ["h2"], ["http/1.1"], ["other", "h2"], ["http/1.1", "h2"]]
SEEDS = range(1, 13)


class Inspected(Chains):
    """Each chain of TLS has a certificate of its own."""

    def __init__(self, world, folder):
        super().__init__(world)
        self.pki = Pki(folder / "pki")
        self.pki.authority("ca")
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        made["certificate_providers"] = {}
        for name, sans in CERTIFICATES.items():
            self.pki.leaf(name, "ca", sans)
            made["certificate_providers"][name] = provider(**{
                CERT: self.pki.folder / f"{name}.pem", KEY: self.pki.folder / f"{name}.key"})
        bootstrap = folder / "bootstrap.json"
        bootstrap.write_text(json.dumps(made))
        self.put_all(INSPECTOR)
        self.bed.start_xds()
        self.bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(bootstrap)})
        self.wait_for("the exact name's chain", lambda: self.secure_size("one.test") == SIZES["green"])

    def matched(self, cluster, certificate=None, **match):
        chain = self.chain("0.0.0.0/0", cluster) | {"filter_chain_match": match}
        return secured(chain, certificate) if certificate else chain

    def put_all(self, *filters):
        self.put(self.matched("green", "one", server_names=["ONE.test"]),
                 self.matched("blue", "wild", server_names=["*.wild.test"], application_protocols=["h2"]),
                 self.matched("green", "front", transport_protocol="tls", application_protocols=["http/1.1"]),
                 self.matched("blue", transport_protocol="raw_buffer"), listener_filters=list(filters))

    def secure_size(self, name, *words):
        argv = ["curl", "-s", "-m", "20", "--cacert", str(self.pki.folder / "ca.pem"), "--resolve",
                f"{name}:{PORT}:{VIP}", *words, f"https://{name}:{PORT}/mark"]
        return len(self.bed.lab.exec("client", argv, check=False).stdout)

    def agent(self, what, *words, address=VIP, port=PORT):
        return self.bed.lab.exec("client", [sys.executable, str(AGENT), what, address, str(port), *words],
                                 timeout=60).stdout

    def ask(self, hellos, **where):
        return json.loads(self.agent("ask", str(self.pki.folder / "ca.pem"), json.dumps(hellos), **where))


@pytest.fixture(name="inspected")
def fixture_inspected(make_world, tmp_path):
    return Inspected(make_world(), tmp_path)


def test_a_hello_decides_which_chain_with_which_certificate(inspected):
    """A36-38."""
    size = inspected.secure_size
    assert size("a.wild.test", "--http2") == SIZES["blue"]
    assert size("front.test", "--http1.1") == SIZES["green"]
    assert inspected.size("10.81.0.1") == SIZES["blue"]
    before = inspected.count("clients_unmatched")
    assert size("a.wild.test", "--http1.1") == 0  # not the chain behind: the name decides first
    assert size("front.test", "--no-alpn") == 0
    assert inspected.count("clients_unmatched") == before + 2
    assert inspected.bed.run_h2load(requests=100).perfect


def test_the_inspector_comes_and_goes_with_the_listener(inspected):
    """A36-25, A36-38."""
    inspected.put_all()
    inspected.wait_for("names without the inspector", lambda: inspected.secure_size("one.test") == 0)
    assert inspected.size("10.81.0.1") == SIZES["blue"]
    inspected.put_all(INSPECTOR)
    inspected.wait_for("the chain again", lambda: inspected.secure_size("one.test") == SIZES["green"])


def test_a_hello_in_pieces_is_one(inspected):
    """A36-38."""
    assert inspected.agent("trickle", str(inspected.pki.folder / "ca.pem"), "one.test") == f"{SIZES['green']}\n"


@pytest.mark.ends_daemon
def test_fl_185_a_hello_that_a_drain_overtakes_is_answered(inspected):
    bed, says = inspected.bed, inspected.bed.lab.dir / "says"
    argv = [sys.executable, str(AGENT), "late", VIP, str(PORT), str(inspected.pki.folder / "ca.pem"), "one.test", says]
    late = bed.lab.start("client", "late", argv)
    inspected.wait_for("the client", lambda: "connected" in late.output() and bed.show("info")["client_connections"])
    bed.daemon.signal(15)
    inspected.wait_for("the drain", lambda: not bed.lab.accepts("client", VIP, PORT, 1))
    says.touch()
    assert late.wait(TAKES_S) == 0, late.output()
    assert late.output().split()[-1] == str(SIZES["green"])
    assert bed.daemon.wait(TAKES_S) == 0, bed.daemon.output()


def test_who_says_half_a_hello_goes_and_leaves_nothing(inspected):
    """TH-138."""
    before = {name: inspected.count(name) for name in ("clients_silent", "hellos_too_large")}
    inspected.agent("half")
    assert inspected.count("clients_silent") == before["clients_silent"] + 2
    assert inspected.count("hellos_too_large") == before["hellos_too_large"] + 1
    used = {pool["pool"]: pool["used"] for pool in inspected.bed.show("pools")}
    assert used["client_hellos"] == 0


def test_plain_text_is_hung_up_on_where_the_listener_demands_a_hello(inspected):
    """A36-40: and served again once it does not, be it by a chain of the same bytes."""
    assert inspected.size("10.81.0.1") == SIZES["blue"]
    inspected.put_all(inspector(close_connection_on_client_hello_parsing_errors=True))
    inspected.wait_for("plain text refused", lambda: inspected.size("10.81.0.1") == 0)
    before = inspected.count("hellos_malformed")
    assert inspected.size("10.81.0.1") == 0
    assert inspected.count("hellos_malformed") == before + 1
    assert inspected.secure_size("one.test") == SIZES["green"]
    inspected.put_all(INSPECTOR)
    inspected.wait_for("plain text again", lambda: inspected.size("10.81.0.1") == SIZES["blue"])


def test_a_hello_above_its_listeners_bound_is_hung_up_on(inspected):
    """TLS-221: plain text goes on."""
    inspected.put_all(inspector(max_client_hello_size=256))
    inspected.wait_for("the hello refused", lambda: inspected.secure_size("one.test") == 0)
    before = inspected.count("hellos_too_large")
    assert inspected.secure_size("one.test") == 0
    assert inspected.count("hellos_too_large") == before + 1
    assert inspected.size("10.81.0.1") == SIZES["blue"]
    inspected.put_all(inspector(max_client_hello_size=16384))
    inspected.wait_for("the hello taken", lambda: inspected.secure_size("one.test") == SIZES["green"])


def some_matches(draw):
    """Of chains no two of which match the same."""
    matches, used = [], set()
    for _ in range(8):
        match = {}
        if draw.random() < 0.4:
            match["server_names"] = draw.sample(NAMES, draw.randint(1, 2))
        if draw.random() < 0.4:
            match["application_protocols"] = draw.sample(PROTOCOLS, draw.randint(1, 2))
        if draw.random() < 0.5:
            match["transport_protocol"] = draw.choice(["tls", "raw_buffer", "other"])
        if draw.random() < 0.3:
            match["prefix_ranges"] = [{"address_prefix": ip, "prefix_len": 8} for ip in ("127.0.0.0", "10.0.0.0")]
        of_it = {(name.lower(), protocol, match.get("transport_protocol"), "prefix_ranges" in match)
                 for name in match.get("server_names", [""]) for protocol in match.get("application_protocols", [""])}
        if not of_it & used:
            used |= of_it
            matches.append(match)
    return matches


def envoy_chain(inspected, match, size, certificate=None):
    manager = {
        "@type": HTTP_MANAGER, "stat_prefix": "it", "codec_type": "AUTO",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "x" * size}}}]}]},
        "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}]}
    lower = {"server_names": [name.lower() for name in match["server_names"]]} if "server_names" in match else {}
    chain = {"filter_chain_match": match | lower, "filters": [{"name": "http", "typed_config": manager}]}
    if certificate:
        files = {kind: {"filename": str(inspected.pki.folder / f"{certificate}.{end}")}
                 for kind, end in (("certificate_chain", "pem"), ("private_key", "key"))}
        chain["transport_socket"] = {"name": "tls", "typed_config": {"@type": DOWNSTREAM, "common_tls_context": {
            "tls_certificates": [files], "alpn_protocols": ["h2", "http/1.1"]}}}
    return chain


def start_envoy(inspected, chains, seed):
    listener = {"name": "it", "address": envoy_proxy.address_of("127.0.0.1", PORT), "filter_chains": chains,
                "listener_filters": [INSPECTOR]}
    path = inspected.bed.lab.dir / f"envoy-{seed}.json"
    path.write_text(json.dumps({"node": {"id": "it", "cluster": "it"}, "static_resources": {"listeners": [listener]}}))
    envoy = inspected.bed.lab.start("client", f"envoy-{seed}", [
        envoy_proxy.BINARY, "-c", path, "-l", "warning", "--concurrency", "1", "--disable-hot-restart"])
    inspected.bed.wait_connect("client", "127.0.0.1", PORT, envoy)
    return envoy


def test_random_chains_are_chosen_as_envoy_chooses_them(inspected):
    """A36-38: each chain by its certificate, or in plain text by the length of its answers."""
    n_answered = 0
    for seed in SEEDS:
        draw = random.Random(seed)
        ours, envoys = [], []
        for n, match in enumerate(some_matches(draw)):
            cluster = draw.choice(["green", "blue"])
            certificate = f"of-{n}" if draw.random() < 0.7 else None
            ours.append(inspected.matched(cluster, certificate, **match))
            envoys.append(envoy_chain(inspected, match, SIZES[cluster], certificate))
        hellos = [None] + [[name, offered] for name in ASKED for offered in OFFERED]
        envoy = start_envoy(inspected, envoys, seed)
        wanted = inspected.ask(hellos, address="127.0.0.1")
        envoy.stop()
        inspected.put(*ours, listener_filters=[INSPECTOR])
        found = []

        def is_alike():
            found[:] = inspected.ask(hellos)
            return found == wanted
        try:
            wait_until(is_alike, 45, "the same chains")
        except TimeoutError:
            different = [(h, w, f) for h, w, f in zip(hellos, wanted, found) if w != f]
            raise AssertionError(f"seed {seed}: {different[:5]} of {ours}") from None
        n_answered += sum(map(bool, wanted))
    assert n_answered > 10 * len(SEEDS), n_answered
