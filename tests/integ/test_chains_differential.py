# SPDX-License-Identifier: Apache-2.0
"""Filter chains (gRFC A36), given to Envoy, to servers of gRPC C-core and grpc-go, and to shuntd: a connection gets the
same chain of each. A chain has one path that answers, so that asking for all of them tells which chain it is.

The peers live beside shuntd on loopback; {here} and {net} stand for a peer's own address and its clients' network.
Who connects from where to where stands for itself: SAME_IP_OR_LOOPBACK is for the unit test."""

import contextlib
import json
import sys

import pytest

import envoy_proxy
import rbac_server
import resources
from agent import Agent, AgentError
from go_build import go_build
from http_cases import BACKENDS, PORT
from lab import wait_until
from resources import HTTP_MANAGER, ROUTER, Folder, route, virtual_host
from routing_cases import ALPHA
from testbed import EXAMPLE, EXIT_TIMEOUT_S, HERE, VIP, Testbed
from testbed import PORT as FRONTEND_PORT

NAME = "socket"
GRPC_PORT, GO_PORT = 50051, 50052
START_S, TIMEOUT_S = 45, 10
ANYWHERE = "::"  # elsewhere grpc-go does not look where a connection goes to
NONE = "none"  # the connection ends
OTHERS = {"net": "127.0.0", "here": "127.0.0.1"}
OURS = {"net": "10.81.0", "here": VIP}
CHOSEN_PORT = 21007  # none that the kernel chooses by itself


def match(to="{here}/32", source=None, **fields):
    made = {"prefix_ranges": [cidr(to)]} if to else {}
    return {**made, **({"source_prefix_ranges": [cidr(source)]} if source else {}), **fields}


def cidr(text):
    ip, bits = text.split("/")
    return {"address_prefix": ip, "prefix_len": int(bits)}


# {set: ({chain: its match}, has a default chain, {source: its chain})}; a source is the last byte and perhaps a port.
SETS = {
    "prefixes": ({
        "one": match(source="{net}.2/32"), "two": match(source="{net}.2/31"), "eight": match(source="{net}.0/29"),
        "port": match(source="{net}.0/29", source_ports=[CHOSEN_PORT]),
        "wider": match("{net}.0/24", "{net}.5/32"), "any": match(None, "{net}.6/32"),
        "named": match(source="{net}.7/32", server_names=["a.test"]),
        "elsewhere": match(source="{net}.7/32", destination_port=FRONTEND_PORT + 1),
        "protocol": match(source="{net}.7/32", application_protocols=["h2"])},
        True,
        {(2, 0): "one", (3, 0): "two", (1, 0): "eight", (4, 0): "eight", (4, CHOSEN_PORT): "port", (5, 0): "eight",
         (6, 0): "eight", (7, 0): "eight", (9, 0): "default"}),
    "plain text": ({
        "plain": match(source="{net}.2/32", transport_protocol="raw_buffer"), "hidden": match(source="{net}.3/32"),
        "tls": match(source="{net}.4/32", transport_protocol="tls"), "wider": match("{net}.0/24")},
        False, {(2, 0): "plain", (3, 0): NONE, (4, 0): NONE}),
    "ports": ({
        "low": match(source_ports=[CHOSEN_PORT]), "rest": match(),
        "of 3": match(source="{net}.3/32", source_ports=[1])},
        True, {(2, CHOSEN_PORT): "low", (2, 0): "rest", (3, 0): "default", (3, CHOSEN_PORT): "default"}),
}


def path_of(chain):
    return f"/{chain.replace(' ', '-')}.T/M"


def filter_chain(name, of, action):
    routes = [{"match": {"path": path_of(name)}, **action}]
    manager = {"@type": HTTP_MANAGER, "stat_prefix": "chain", "codec_type": "HTTP2",
               "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}],
               "route_config": {"name": "routes", "virtual_hosts": [virtual_host("all", ["*"], *routes)]}}
    made = {"filters": [{"name": "hcm", "typed_config": manager}]}
    return made if of is None else {**made, "filter_chain_match": of}


def listener(name, case, where, address, action):
    matches, has_default, _ = SETS[case]
    made = {"@type": resources.LISTENER, "name": name, "address": envoy_proxy.address_of(*address),
            "filter_chains": [filter_chain(chain, of, action) for chain, of in matches.items()]}
    if has_default:
        made["default_filter_chain"] = filter_chain("default", None, action)
    text = json.dumps(made)
    for word, value in where.items():
        text = text.replace(f"{{{word}}}", value)
    return json.loads(text)


def of_server(case, ip, port):
    address = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
    return listener(rbac_server.LISTENER.format(address), case, OTHERS, (ip, port), {"non_forwarding_action": {}})


class Peers:
    """All four, and who asks them."""

    def __init__(self, bed, case, program):
        self.bed, self.case = bed, case
        bed.listener = NAME
        bed.lab.ip("backends", "route", "add", "local", "10.82.2.0/24", "dev", "lo")
        bed.lab.start("backends", "peers", [sys.executable, HERE / "h2_peer.py", "serve", PORT])
        for last in range(2, 10):
            bed.lab.address("client", "c0", f"10.81.0.{last}/24")
        Folder(bed.xds_folder).set(
            resources.cluster(ALPHA), resources.endpoints(ALPHA, (BACKENDS[ALPHA], PORT)),
            of_server(case, ANYWHERE, GO_PORT),
            listener(NAME, case, OURS, (VIP, FRONTEND_PORT), {"route": {"cluster": ALPHA}}))
        bed.wait_connect("backends", BACKENDS[ALPHA], PORT)
        bed.start_xds()
        self.start_servers(program)
        bed.start_daemon()
        self.near = Agent(bed.lab, "lb", "near", "h2_agent.py")
        self.far = Agent(bed.lab, "client", "far", "h2_agent.py")
        first, wanted = next(iter(SETS[case][2].items()))
        with contextlib.suppress(TimeoutError):  # who is not ready by then is told as wrong
            wait_until(lambda: not list(self.wrong_of(first, wanted)), START_S, "all of them")

    def start_servers(self, program):
        lab = self.bed.lab
        (lab.dir / "server.json").write_text(json.dumps(of_server(self.case, "127.0.0.1", GRPC_PORT)))
        lab.start("lb", "core", [sys.executable, HERE / "rbac_server.py", lab.dir, GRPC_PORT])
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        made["server_listener_resource_name_template"] = rbac_server.LISTENER.format("%s")
        (lab.dir / "go.json").write_text(json.dumps(made))
        lab.start("lb", "go", [program, "serve", f"[{ANYWHERE}]:{GO_PORT}"],
                  env={"GRPC_XDS_BOOTSTRAP": str(lab.dir / "go.json")})
        envoy = listener("envoy", self.case, OTHERS, (envoy_proxy.ADDRESS, envoy_proxy.PORT),
                         {"route": {"cluster": ALPHA}})
        del envoy["@type"]
        envoy_proxy.start(self.bed, "lb", {
            "node": {"id": "oracle", "cluster": "oracle"}, "static_resources": {
                "listeners": [envoy], "clusters": [envoy_proxy.cluster(ALPHA, [("127.0.0.1", 1)])]}})

    def chain_of(self, agent, ip, port, source, hit):
        """The chain of a connection: whose path `hit` says to be there."""
        matches, has_default, _ = SETS[self.case]
        chains = [*matches, *(["default"] if has_default else [])]
        calls = [{"fields": [[":method", "POST"], [":scheme", "http"], [":path", path_of(chain)],
                             [":authority", "a.test"], ["content-type", "application/grpc"], ["te", "trailers"]],
                  "body": "\0\0\0\0\0"} for chain in chains]
        try:
            answers = agent.ask(ip=ip, port=port, source=source, requests=calls, timeout=TIMEOUT_S)
        except AgentError as error:
            return NONE if "ConnectionResetError" in str(error) else str(error)
        found = [chain for chain, answer in zip(chains, answers) if answer["status"] and hit(answer)]
        ended = all(answer["status"] is None and answer["reset"] != "none" for answer in answers)  # not silent
        return " ".join(found) or (NONE if ended else f"? {answers}")

    def wrong(self):
        for source, wanted in SETS[self.case][2].items():
            yield from self.wrong_of(source, wanted)

    def wrong_of(self, source, wanted):
        for peer, agent, where, port, hit in (
                ("C-core", self.near, OTHERS, GRPC_PORT, answered), ("grpc-go", self.near, OTHERS, GO_PORT, answered),
                ("Envoy", self.near, OTHERS, envoy_proxy.PORT, routed),
                ("shuntd", self.far, OURS, FRONTEND_PORT, answered)):
            got = self.chain_of(agent, where["here"], port, [f"{where['net']}.{source[0]}", source[1]], hit)
            if got != wanted:
                yield f"{source}: {peer} has {got}, not {wanted}"


def status_of(answer):
    return dict([*answer["fields"], *answer["trailers"]]).get("grpc-status")


def answered(answer):
    return status_of(answer) in ("0", None)


def routed(answer):
    """Envoy has nobody behind it, and tells a call without a route apart from one whose backend is not there."""
    return status_of(answer) == "14"


@pytest.fixture(name="program", scope="module")
def fixture_program(tmp_path_factory):
    if not envoy_proxy.BINARY.exists():
        pytest.skip("no Envoy")
    return go_build("grpcgo", ".", tmp_path_factory.mktemp("go") / "grpcgo", timeout=380)


@pytest.mark.timeout(500)  # grpc-go is built once, of many packages
@pytest.mark.parametrize("case", SETS)
def test_a_connection_gets_the_same_chain_of_envoy_and_of_grpc(lab, program, case):
    """A36-20, A36-22 to A36-25, A36-30."""
    peers = Peers(Testbed(lab), case, program)
    wrong = list(peers.wrong())
    assert not wrong, f"{len(wrong)} wrong\n" + "\n".join(wrong)
    assert peers.bed.daemon.stop(EXIT_TIMEOUT_S) == 0
