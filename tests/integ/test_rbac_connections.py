# SPDX-License-Identifier: Apache-2.0
"""Access control by addresses and certificates (A41-*): the rows of tests/support/rbac_rows.json that ask for these, as
virtual hosts of filter chains, given to Envoy and, as Listeners that nobody names, to shuntd. Each row is asked by a
client that connects from where, to where and with the certificate that the row says.

What a PROXY header and other proxies tell of a client is asked for in test_rbac.py and test_proxy_header.py."""

import json

import pytest

import envoy_proxy
import resources
from agent import Agent
from differential import add_oracle
from http_cases import BACKENDS, PORT
from lab import wait_until
from pki import Pki
from resources import HTTP_MANAGER, ROUTER, Folder, route_config
from routing_cases import ALPHA
from test_certs import CA, CERT, KEY
from test_inspected_chains import INSPECTOR
from test_rbac import FILTER, alpha, ask, call_of, differences, hosts_of, rows_for, start_backends
from test_tls import provider
from testbed import EXAMPLE, EXIT_TIMEOUT_S, VIP, VIP6, Testbed
from tls_table import DOWNSTREAM

HERE, HERE6 = "10.9.0.1", "fd09::1"  # where rows go to that do not say it
PLAIN, SECURE = 8443, 9443
OPEN = [(HERE, PLAIN), (HERE, 443), ("10.8.0.1", PLAIN), (HERE6, PLAIN)]
VIPS = ("10.8.0.0/15", "fd09::/64")
TOLD = {"direct", "remote"}  # by others than the client
MIN_ROWS = 25
START_S = 45


def asked(*, envoy):
    return [each for each in rows_for(envoy=envoy, of_a_connection=True) if not TOLD & set(each[0]["request"])]


def sources():
    return sorted({row["request"]["source"] for row, _, _ in asked(envoy=False) if "source" in row["request"]})


class Identities:
    """Certificates of the names that rows have."""

    def __init__(self, folder):
        self.pki = Pki(folder)
        self.pki.authority("ca")
        self.pki.leaf("front", "ca", f"IP:{HERE}")
        self.made = {}

    def own(self, tls):
        """[certificate, key]; None = the client has none."""
        sans = ",".join([*(f"URI:{uri}" for uri in tls.get("uri", [])), *(f"DNS:{dns}" for dns in tls.get("dns", []))])
        subject = "".join(f"/{part}" for part in reversed(tls.get("subject", "").split(",")))
        if not sans and subject == "/":
            return None
        key = sans, subject
        if key not in self.made:
            self.made[key] = self.pki.leaf(f"client-{len(self.made)}", "ca", sans, subject=subject)
        return [str(self.pki.folder / f"{self.made[key]}.{end}") for end in ("pem", "key")]

    def way(self, request):
        """Where a row's client connects to, and how."""
        source, tls = request.get("source"), request.get("tls")
        here = HERE6 if ":" in (source or "") else HERE
        port = PLAIN if tls is None else SECURE
        way = {"ip": request.get("destination", here), "port": request.get("port", port)}
        if source:
            way["source"] = [source, 0]
        if tls is not None:
            way["tls"] = {"ca": str(self.pki.folder / "ca.pem"), "own": self.own(tls), "name": tls.get("sni")}
        return way

    def files(self):
        """Envoy's common context."""
        at = self.pki.folder
        return {"alpn_protocols": ["h2"],
                "tls_certificates": [{"certificate_chain": {"filename": str(at / "front.pem")},
                                      "private_key": {"filename": str(at / "front.key")}}],
                "validation_context": {"trusted_ca": {"filename": str(at / "ca.pem")}}}

    def bootstrap(self):
        """Of shuntd, whose common context is INSTANCES."""
        made, at = json.loads((EXAMPLE / "bootstrap.json").read_text()), self.pki.folder
        made["certificate_providers"] = {"front": provider(**{CERT: at / "front.pem", KEY: at / "front.key"}),
                                         "ca": provider(**{CA: at / "ca.pem"})}
        path = at / "bootstrap.json"
        path.write_text(json.dumps(made))
        return {"GRPC_XDS_BOOTSTRAP": str(path)}


INSTANCES = {"tls_certificate_provider_instance": {"instance_name": "front"},
             "validation_context": {"ca_certificate_provider_instance": {"instance_name": "ca"}}}


def listeners(rows, common):
    """One in the clear and one that asks for a certificate, with the same hosts."""
    manager = {"@type": HTTP_MANAGER, "stat_prefix": "rows", "codec_type": "HTTP2", "generate_request_id": False,
               "route_config": {"name": "rows", "virtual_hosts": list(hosts_of(rows))},
               "http_filters": [FILTER, {"name": "router", "typed_config": {"@type": ROUTER}}]}
    filters = [{"name": "http", "typed_config": manager}]
    first, *more = [envoy_proxy.address_of(*each) for each in OPEN]
    socket = {"name": "tls", "typed_config": {"@type": DOWNSTREAM, "common_tls_context": common}}
    return [{"name": "open", "address": first, "additional_addresses": [{"address": each} for each in more],
             "filter_chains": [{"filters": filters}]},
            {"name": "secure", "address": envoy_proxy.address_of(HERE, SECURE), "listener_filters": [INSPECTOR],
             "filter_chains": [{"filters": filters, "transport_socket": socket}]}]


def start_envoy(bed, identities):
    bed.lab.enable_ip6("oracle", "lo")
    for ip in {ip for ip, _ in OPEN} | {*sources()}:
        words = ["128", "nodad"] if ":" in ip else ["32"]
        bed.lab.ip("oracle", "addr", "add", f"{ip}/{words[0]}", "dev", "lo", *words[1:])
    wait_for = {"name": "ready", "address": envoy_proxy.address_of(envoy_proxy.ADDRESS, envoy_proxy.PORT),
                "filter_chains": listeners([], {})[0]["filter_chains"]}
    envoy_proxy.start(bed, "oracle", {"node": {"id": "oracle", "cluster": "oracle"}, "static_resources": {
        "listeners": [*listeners(asked(envoy=True), identities.files()), wait_for],
        "clusters": [envoy_proxy.cluster(ALPHA, [(BACKENDS[ALPHA], PORT)])]}})


def start_ours(bed, identities):
    for ip in sources():
        if ":" in ip:
            bed.lab.ip("client", "addr", "add", f"{ip}/128", "dev", "c0", "nodad")
        else:
            bed.lab.address("client", "c0", f"{ip}/32")
    for prefix in VIPS:
        bed.lab.ip("client", "route", "add", prefix, "via", VIP6 if ":" in prefix else VIP)
    bed.port_settings = {0: ["gateway: 10.81.0.1", "gateway6: 'fd81::1'"]}
    bed.settings = f"listeners: wildcard\nvips: [{', '.join(f'{{prefix: {json.dumps(each)}}}' for each in VIPS)}]\n"
    Folder(bed.xds_folder).set(resources.listener("web", "routes"), route_config("routes"), *alpha(), *(
        {"@type": resources.LISTENER, **each} for each in listeners(asked(envoy=False), INSTANCES)))
    bed.start_xds()
    bed.start_daemon(env=identities.bootstrap())
    wait_until(lambda: [row["state"] for row in bed.show("listeners") if row["name"] in ("open", "secure")]
               == ["serving"] * 2, START_S, "the listeners")


@pytest.mark.skipif(not envoy_proxy.BINARY.exists(), reason="no Envoy")
@pytest.mark.timeout(180)
def test_same_verdict_as_envoy_on_addresses_and_certificates(lab, tmp_path):
    """A36-65, A41-07, A41-11 to A41-13."""
    bed = Testbed(lab, ip6=True)
    identities = Identities(tmp_path / "pki")
    add_oracle(bed)
    start_backends(bed)
    start_envoy(bed, identities)
    start_ours(bed, identities)
    agents = {"Envoy": Agent(bed.lab, "oracle", "oracle", "h2_agent.py"),
              "shuntd": Agent(bed.lab, "client", "ours", "h2_agent.py")}
    wrong = []
    for who, agent in agents.items():
        rows = asked(envoy=who == "Envoy")
        assert len(rows) >= 2 * MIN_ROWS
        got = [ask(agent, calls=[call_of(row, host)], **identities.way(row["request"]))[0] for row, _, host in rows]
        wrong += differences(rows, who, got)
    assert not wrong, "\n".join(wrong)
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
