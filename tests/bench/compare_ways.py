# SPDX-License-Identifier: Apache-2.0
"""The ways of speaking that tools/compare has rows for: in clear text, with TLS, HTTP/1.1; and what they need: one
certificate on P-256, and TLS 1.3, for everybody. Nobody resumes a session."""

import collections
import json

from pki import Pki
from testbed import EXAMPLE

UPSTREAM = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
DOWNSTREAM = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
BACKEND_NAME = "back.example"
FRONT = "tls: {certificate: front}"  # of a frontend of shuntd

# front, back: with TLS; http1: clients speak HTTP/1.1.
Way = collections.namedtuple("Way", "name front back http1", defaults=(False, False, False))
CLEAR = Way("in clear text")
TLS, TLS_BOTH, HTTP1 = Way("TLS at the front", True), Way("TLS on both sides", True, True), Way("HTTP/1.1", http1=True)
WAYS = (CLEAR, TLS, TLS_BOTH, HTTP1)


def named(what, way):
    """What a figure is called."""
    return f"{what}, {way.name}"


def added(what, way):
    return f"{what}: added by {way.name}"


class Credentials:
    """Files of one CA, of a front and of a backend, in a Lab's folder."""

    def __init__(self, lab):
        self.pki = Pki(lab.dir / "pki")
        self.folder = self.pki.folder
        self.pki.authority("ca")
        self.pki.leaf("front", "ca", "DNS:front.example,IP:10.81.0.10")
        self.pki.leaf("back", "ca", f"DNS:{BACKEND_NAME},IP:10.82.0.1,IP:10.82.9.1")
        for name in ("front", "back"):
            (self.folder / f"{name}.both").write_text(self.pki.pem(name) + self.pki.key(name))

    def path(self, name):
        return str(self.folder / name)

    def of_shunt(self, way):
        """Arguments of load_agent.serve_echo(); the frontend's part is FRONT."""
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        files = {"front": {"certificate_file": self.path("front.pem"), "private_key_file": self.path("front.key")},
                 "ca": {"ca_certificate_file": self.path("ca.pem")}}
        made["certificate_providers"] = {
            name: {"plugin_name": "file_watcher", "config": {**config, "refresh_interval": "600s"}}
            for name, config in files.items()}
        path = self.folder / "bootstrap.json"
        path.write_text(json.dumps(made))
        trust = {"ca_certificate_provider_instance": {"instance_name": "ca"}}
        socket = {"name": "tls", "typed_config": {
            "@type": UPSTREAM, "sni": BACKEND_NAME, "common_tls_context": {"validation_context": trust}}}
        return {"env": {"GRPC_XDS_BOOTSTRAP": str(path)}, **({"transport_socket": socket} if way.back else {})}

    def of_envoy(self):
        """(of its listener, of its cluster): transport sockets."""
        versions = {"tls_minimum_protocol_version": "TLSv1_3", "tls_maximum_protocol_version": "TLSv1_3"}
        pair = {"certificate_chain": {"filename": self.path("front.pem")},
                "private_key": {"filename": self.path("front.key")}}
        common = {"tls_params": versions, "alpn_protocols": ["h2"]}
        trust = {"trusted_ca": {"filename": self.path("ca.pem")}}
        return ({"name": "tls", "typed_config": {
                    "@type": DOWNSTREAM, "disable_stateless_session_resumption": True,
                    "common_tls_context": {**common, "tls_certificates": [pair]}}},
                {"name": "tls", "typed_config": {
                    "@type": UPSTREAM, "sni": BACKEND_NAME,
                    "common_tls_context": {**common, "validation_context": trust}}})
