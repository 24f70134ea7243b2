# SPDX-License-Identifier: Apache-2.0
"""Which servers are spoken to, by the names of their certificates: the same TLS contexts (names_table.py) to shuntd, to
clients of gRPC C-core and grpc-go and to Envoy, before servers of gRPC with two certificates."""

import json

import pytest

import envoy_proxy
import resources
from agent import Agent
from differential import add_oracle
from go_build import go_build
from names_table import COMMON_NAME, HOST, NAMES, ROWS
from pki import Pki
from resources import Folder, route, route_config, virtual_host
from test_certs import CA, CERT, KEY
from test_tls import UPSTREAM, provider
from test_tls_peers_grpc import LISTENER, server_listener
from testbed import EXAMPLE, EXIT_TIMEOUT_S, PORT, VIP, Testbed
from verdict_world import SWITCHES

SERVERS = {True: 9443, False: 9444}  # ports, by whether the certificate has names
CALL_S = 60
MIN_ROWS = 40
OURS, CORE, GO, ENVOY = "shuntd", "C-core", "grpc-go", "Envoy"


def path_of(number):
    return f"/row{number}.T/M"


def routes():
    return route_config("routes", virtual_host("all", ["*"], *(
        route(path_of(n), f"row{n}") for n in range(len(ROWS)))))


def socket_of(row, trust):
    """trust: where a peer has its CAs from."""
    validation = dict(trust)
    if row.names:
        validation["match_subject_alt_names"] = row.names
    if row.typed:
        validation["match_typed_subject_alt_names"] = [{"san_type": t, "matcher": m} for t, m in row.typed]
    return {"name": "envoy.transport_sockets.tls", "typed_config": {
        "@type": UPSTREAM, "common_tls_context": {"validation_context": validation}, **row.fields}}


def members_of(number, row):
    made = resources.endpoints(f"row{number}", (HOST, SERVERS[row.has_names]))
    if row.hostname:
        made["endpoints"][0]["lb_endpoints"][0]["endpoint"]["hostname"] = row.hostname
    return made


def clusters():
    for number, row in enumerate(ROWS):
        yield members_of(number, row)
        yield {**resources.cluster(f"row{number}"), "transport_socket": socket_of(
            row, {"ca_certificate_provider_instance": {"instance_name": "ca"}})}


def open_listener(port):
    """Of a gRPC server that asks for no certificate."""
    made = server_listener(HOST, port)
    context = made["filter_chains"][0]["transport_socket"]["typed_config"]
    del context["require_client_certificate"], context["common_tls_context"]["validation_context"]
    return made


def envoy_configuration(pki):
    config = envoy_proxy.configuration(routes(), {}, [])
    trust = {"trusted_ca": {"filename": str(pki.folder / "ca.pem")}}
    for number, row in enumerate(ROWS):
        socket = socket_of(row, trust)
        socket["typed_config"]["common_tls_context"]["alpn_protocols"] = ["h2"]
        members = {k: v for k, v in members_of(number, row).items() if k != "@type"}
        config["static_resources"]["clusters"].append({
            **envoy_proxy.cluster(f"row{number}", []), "load_assignment": members, "transport_socket": socket})
    return config


class World:
    def __init__(self, bed, folder, program):
        self.bed = bed
        self.pki = Pki(folder / "pki")
        self.pki.authority("ca")
        self.pki.leaf("named", "ca", NAMES)
        self.pki.leaf("unnamed", "ca", sans="", subject=f"/CN={COMMON_NAME}")
        add_oracle(bed)
        bed.add_backend_address(HOST)
        Folder(bed.xds_folder).set(resources.listener("web", "routes"), routes(), *clusters(),
                                   *map(open_listener, SERVERS.values()))
        for ns in ("backends", "oracle", "lb"):
            bed.start_xds(ns=ns)
        for has_names, port in SERVERS.items():
            own = "named" if has_names else "unnamed"
            server = bed.start_grpc_backend(own, HOST, port, ["xds"], env=self.bootstrap(own))
            bed.wait_connect("backends", HOST, port, server)
        env = {**self.bootstrap("named"), **SWITCHES}
        bed.start_daemon(env=env)
        envoy_proxy.start(bed, "oracle", envoy_configuration(self.pki))
        self.far = Agent(bed.lab, "client", "far", "grpc_agent.py")
        self.near = Agent(bed.lab, "oracle", "near", "grpc_agent.py", env=env)
        self.go = Agent(bed.lab, "oracle", "go", "go_agent.py", program, "xds:///web", env=env)

    def bootstrap(self, own):
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        made["server_listener_resource_name_template"] = LISTENER.format("%s")
        at = self.pki.folder
        made["certificate_providers"] = {"own": provider(**{CERT: at / f"{own}.pem", KEY: at / f"{own}.key"}),
                                         "ca": provider(**{CA: at / "ca.pem"})}
        path = at / f"bootstrap-{own}.json"
        path.write_text(json.dumps(made))
        return {"GRPC_XDS_BOOTSTRAP": str(path)}

    def ask(self):
        """{peer: for each row whether a call got through}"""
        calls = [{"authority": "web", "path": path_of(n), "metadata": [], "timeout": CALL_S} for n in range(len(ROWS))]
        ways = {OURS: (self.far, {"target": f"{VIP}:{PORT}"}),
                CORE: (self.near, {"target": "xds:///{}", "xds_credentials": True}),
                ENVOY: (self.near, {"target": f"{envoy_proxy.ADDRESS}:{envoy_proxy.PORT}"})}
        answers = {peer: agent.ask(calls=calls, parallel=len(calls), **words) for peer, (agent, words) in ways.items()}
        codes = {a["code"] for heard in answers.values() for a in heard}
        assert codes <= {"OK", "UNAVAILABLE"}, f"some had no answer in time: {codes}"
        found = {peer: [a["code"] == "OK" for a in heard] for peer, heard in answers.items()}
        found[GO] = [bool(self.go.ask(method=call["path"], count=1, headers={})["answers"]) for call in calls]
        return found


def complaints(found):
    for peer, opened in found.items():
        for row, opens in zip(ROWS, opened, strict=True):
            known = row.known.get(peer)
            if (opens == row.opens) == bool(known):
                yield f"{row.label}: {peer} {'opens' if opens else 'does not open'}; known is {known!r}"


@pytest.mark.skipif(not envoy_proxy.BINARY.exists(), reason="no Envoy")
@pytest.mark.timeout(600)  # the program is built once, of many packages
def test_the_same_certificates_are_good_enough_as_for_grpc_and_envoy(lab, tmp_path):
    """TLS-124, TLS-125, TLS-130, TLS-131, TLS-165."""
    program = go_build("grpcgo", ".", tmp_path / "bin" / "grpcgo", timeout=380)
    world = World(Testbed(lab), tmp_path, program)
    wrong = list(complaints(world.ask()))
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)
    assert len(ROWS) >= MIN_ROWS
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0
