# SPDX-License-Identifier: Apache-2.0
"""Who a client is, told by its certificate over a real connection: to a backend by x-forwarded-client-cert, and to
rbac; and a PROXY header in front of a ClientHello."""

import json
import re
import sys

import pytest

import resources
from lab import wait_until
from pki import Pki, replace
from resources import TYPES, Folder
from test_certs import CA, CERT, KEY
from test_proxy_header import BACKEND, BACKEND_PORT, CLIENT
from test_tls import provider
from testbed import EXAMPLE, EXIT_TIMEOUT_S, HERE, PORT, VIP, Testbed

BEHIND = 8081
CLIENTS = {"one": "spiffe://a/one", "two": "spiffe://a/two"}
FRONT = "spiffe://a/front"
RENEWED = ("spiffe://a/renewed", "spiffe://a/moved")
RENEWAL_S = 20
FORGED = 'URI="spiffe://a/forged"'
RBAC = TYPES + "extensions.filters.http.rbac.v3.RBAC"
TLS = "tls: {certificate: front, ca: ca}"
VERSIONS = ("1.2", "1.3")


class Bed(Testbed):
    def __init__(self, lab, folder):
        super().__init__(lab)
        self.frontend_settings = TLS
        self.more_frontends = (
            f"{{name: behind, address: {VIP}, port: {BEHIND}, target: web, proxy_protocol: {{allow: [{CLIENT}/32]}}, "
            f"{TLS}}}",)
        self.pki = Pki(folder / "pki")
        self.pki.authority("ca")
        self.pki.leaf("front", "ca", f"IP:{VIP},URI:{FRONT}")
        for name, uri in CLIENTS.items():
            self.pki.leaf(name, "ca", f"URI:{uri}")

    def renew(self):
        """The frontend's certificate."""
        at = self.pki.folder
        self.pki.leaf("new", "ca", ",".join((f"IP:{VIP}", *(f"URI:{uri}" for uri in RENEWED))))
        for suffix in ("key", "pem"):
            replace(at / f"front.{suffix}", (at / f"new.{suffix}").read_text())

    def ask(self, path, *words, who=None, version="1.3", port=PORT):
        """(status, {header of the answer: value}); a status of 0: curl has failed."""
        at = self.pki.folder
        own = ["--cert", at / f"{who}.pem", "--key", at / f"{who}.key"] if who else []
        done = self.lab.exec("client", [
            "curl", "-sS", "--http2", "--max-time", "20", "--cacert", at / "ca.pem", f"--tlsv{version}", "--tls-max",
            version, "-o", "/dev/null", "-D", "-", "-w", "\nstatus: %{http_code}\n", *own, *words,
            f"https://{VIP}:{port}{path}"], check=False)
        seen = dict(re.findall(r"^([a-z-]+): *(.*?)\r?$", done.stdout, re.MULTILINE))
        return int(seen["status"]), seen


def access():
    """rbac by a path and a name: /two is for the second client alone."""
    is_two = {"authenticated": {"principal_name": {"exact": CLIENTS["two"]}}}
    other = {"not_rule": {"url_path": {"path": {"prefix": "/two"}}}}
    return {"name": "rbac", "typed_config": {"@type": RBAC, "rules": {"action": "ALLOW", "policies": {
        "two": {"permissions": [{"any": True}], "principals": [is_two]},
        "rest": {"permissions": [other], "principals": [{"any": True}]}}}}}


@pytest.fixture(name="bed")
def fixture_bed(lab, tmp_path):
    bed = Bed(lab, tmp_path)
    bed.add_backend_address(BACKEND)
    lab.start("backends", "peer", [sys.executable, HERE / "h2_peer.py", "serve", str(BACKEND_PORT)])
    bed.wait_connect("backends", BACKEND, BACKEND_PORT)
    web = resources.listener("web", "routes")
    manager = web["api_listener"]["api_listener"]
    manager.update(use_remote_address=True, forward_client_cert_details="SANITIZE_SET",
                   set_current_client_cert_details={"uri": True},
                   http_filters=[access(), *manager["http_filters"]])
    Folder(bed.xds_folder).set(
        web, resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "one"))),
        resources.cluster("one"), resources.endpoints("one", (BACKEND, BACKEND_PORT)))
    bed.start_xds()
    boot, at = json.loads((EXAMPLE / "bootstrap.json").read_text()), bed.pki.folder
    boot["certificate_providers"] = {
        "front": provider(**{CERT: at / "front.pem", KEY: at / "front.key"}), "ca": provider(**{CA: at / "ca.pem"})}
    path = tmp_path / "bootstrap.json"
    path.write_text(json.dumps(boot))
    bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})
    yield bed
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backend_learns_the_name_in_the_clients_certificate_alone(bed, version):
    """TLS-149: what a client says of itself in the header is dropped, whether it has a certificate or none."""
    forged = ("-H", f"x-forwarded-client-cert: {FORGED}")
    for who, uri in CLIENTS.items():
        status, seen = bed.ask("/", *forged, who=who, version=version)
        assert status == 200 and f"URI={uri}" in seen["x-cert"] and "forged" not in seen["x-cert"], seen
    status, seen = bed.ask("/", *forged, version=version)
    assert status == 200 and seen["x-cert"] == "", seen


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backend_learns_which_certificate_the_client_was_shown(bed, version):
    """HX-58: each of its URIs; those of another one that has taken its place."""
    def said():
        return bed.ask("/", who="one", version=version)[1]["x-cert"].partition("Hash=")[0]
    assert said() == f"By={FRONT};"
    bed.renew()
    wanted = "".join(f"By={uri};" for uri in RENEWED)
    wait_until(lambda: said() == wanted, RENEWAL_S, "By of the new certificate")


@pytest.mark.parametrize("version", VERSIONS)
def test_rbac_lets_the_client_in_that_its_certificate_names(bed, version):
    """TLS-149, A41-12."""
    for who, wanted in (("two", 200), ("one", 403), (None, 403)):
        assert bed.ask("/two", who=who, version=version)[0] == wanted, who
        assert bed.ask("/", who=who, version=version)[0] == 200, who


@pytest.mark.parametrize("version", VERSIONS)
def test_a_proxy_header_may_stand_before_a_client_hello(bed, version):
    """PP-01, PP-07: the address is the header's, the name is the certificate's; without it there is no connection."""
    status, seen = bed.ask("/two", "--haproxy-protocol", who="two", version=version, port=BEHIND)
    assert status == 200 and seen["x-for"] == CLIENT and CLIENTS["two"] in seen["x-cert"], seen
    assert bed.ask("/two", "--haproxy-protocol", who="one", version=version, port=BEHIND)[0] == 403
    assert bed.ask("/", who="two", version=version, port=BEHIND)[0] == 0
