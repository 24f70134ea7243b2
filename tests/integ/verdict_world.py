# SPDX-License-Identifier: Apache-2.0
"""The peers of test_verdicts: shuntd, gRPC C-core and grpc-go, who hear the same bytes of one management server, and
Envoy, who hears them of another one with what it does not know put into its own words."""

import copy
import json

import envoy_proxy
import resources
from agent import Agent
from cluster_table import PATHS, good_cluster
from differential import add_oracle
from http_cases import BACKENDS, PORT
from lab import wait_until
from resources import cluster, endpoints, route, route_config, virtual_host
from routing_cases import ALPHA
from test_validation import CORE, OURS, World
from testbed import XDS_ADDRESS
from tls_table import PROVIDER
from validation_table import ROUTES

GO, ENVOY = "gRPC Go", "envoy"
SWITCHES = {f"GRPC_EXPERIMENTAL_XDS_{name}": "true" for name in ("SYSTEM_ROOT_CERTS", "SNI", "HTTP_CONNECT")}
START_S = 45
SAYS_S = 20  # a verdict takes milliseconds, where nobody else wants the machine
OWN = ("tls_certificate_provider_instance", "tls_certificate_certificate_provider_instance")
CA, OLD_CA = "ca_certificate_provider_instance", "validation_context_certificate_provider_instance"


class Peers(World):
    """publish() tells what each of the four said."""

    def __init__(self, bed, bootstrap, pki, program):
        super().__init__(bed, bootstrap, SWITCHES)
        self.pki = pki
        env = {"GRPC_XDS_BOOTSTRAP": str(bootstrap), **SWITCHES}
        self.go = Agent(bed.lab, "lb", "go", "go_agent.py", program, "xds:///web", env=env)
        self.go.ask(method="/x/y", count=1, headers={})
        add_oracle(bed)
        self.other_server = Agent(bed.lab, "oracle", "other", "ads_agent.py", XDS_ADDRESS)
        self.other_server.ask(put=[each for name, ip in BACKENDS.items()
                                   for each in (cluster(name), endpoints(name, (ip, PORT)))])
        self.other_server.ask(put=[route_config(ROUTES, virtual_host("all", ["*"], route("", ALPHA)))])
        config = bed.lab.dir / "envoy.json"
        config.write_text(json.dumps(envoy_configuration()))
        self.envoy = bed.lab.start("oracle", "envoy", [
            envoy_proxy.BINARY, "-c", config, "-l", "error", "--concurrency", "1", "--disable-hot-restart"], cpu=None)
        wait_until(self.envoy_listens, START_S, "Envoy, which asks for listeners")

    def envoy_listens(self):
        return ENVOY in self.other_server.ask(put=[self.for_envoy(plain_listener())])

    def use(self, name):
        """All are to use the cluster of this name."""
        self.publish([good_cluster(name), resources.listener("web", ROUTES)])  # grpc-go knows no session filter
        self.publish([self.routes([virtual_host("row", ["*"], route(PATHS[name], name))])])
        self.wait_wanted(resources.CLUSTER, name)

    def verdicts(self, row):
        """{peer: "" = accepted | what it says}"""
        patches = [[0, *patch] for patch in row.patch]
        told = self.server.ask(put=[row.resource], patch=patches, wait_s=SAYS_S)
        told |= self.other_server.ask(put=[self.for_envoy(row.resource)], patch=patches, wait_s=SAYS_S)
        heard = {peer: text for agent, text in told.items() for peer in (OURS, CORE, GO, ENVOY)
                 if agent.startswith(peer)}
        assert len(heard) == 4 and "gone" not in heard.values(), (row, told)  # dead is no verdict
        return heard

    def for_envoy(self, resource):
        """The same resource: what our provider gives is a file; no port is taken; and endpoints are not waited for, as
        Envoy does not tell its verdict on a cluster before it has them."""
        made = self.in_files(copy.deepcopy(resource))
        if made["@type"] == resources.LISTENER:
            made["bind_to_port"] = False
        elif "eds_cluster_config" in made:
            made["eds_cluster_config"]["eds_config"]["initial_fetch_timeout"] = "0.001s"
        return made

    def in_files(self, value):
        if isinstance(value, list):
            return [self.in_files(each) for each in value]
        if not isinstance(value, dict):
            return value
        made = {name: self.in_files(each) for name, each in value.items()}
        if any(is_ours(made.get(name)) for name in OWN):
            made["tls_certificates"] = [{"certificate_chain": self.file("leaf.pem"),
                                         "private_key": self.file("leaf.key")}]
        if is_ours(made.get(CA)):
            made["trusted_ca"] = self.file("ca.pem")
        combined = made.get("combined_validation_context", {"validation_context_sds_secret_config": None})
        if "validation_context_sds_secret_config" not in combined:  # without which it is refused
            made["validation_context"] = combined.get("default_validation_context", {})
            if is_ours(combined.get(OLD_CA)):
                made["validation_context"].setdefault("trusted_ca", self.file("ca.pem"))
            del made["combined_validation_context"]
        return {name: each for name, each in made.items() if name not in (*OWN, CA) or not is_ours(each)}

    def file(self, name):
        return {"filename": str(self.pki.folder / name)}


def is_ours(instance):
    return isinstance(instance, dict) and instance.get("instance_name") == PROVIDER


def plain_listener():
    manager = resources.listener("web", ROUTES)["api_listener"]["api_listener"]
    return {"@type": resources.LISTENER, "name": "web", "address": envoy_proxy.address_of("0.0.0.0", 1),
            "filter_chains": [{"filters": [{"name": "hcm", "typed_config": manager}]}]}


def envoy_configuration():
    """Listeners and clusters come by ADS."""
    ip, port = XDS_ADDRESS.split(":")
    grpc = {"envoy_grpc": {"cluster_name": "ads"}}
    return {"node": {"id": "oracle", "cluster": "oracle"},
            "static_resources": {"clusters": [envoy_proxy.cluster("ads", [(ip, int(port))])]},
            "dynamic_resources": {
                "ads_config": {"api_type": "GRPC", "transport_api_version": "V3", "grpc_services": [grpc]},
                "lds_config": resources.ADS, "cds_config": resources.ADS}}
