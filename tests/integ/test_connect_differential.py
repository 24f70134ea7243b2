# SPDX-License-Identifier: Apache-2.0
"""Backends behind an HTTP proxy (gRFC A86), beside gRPC C-core, grpc-go and Envoy: what a proxy is asked for is the
same, and the same answers open the way. Each has a way to the proxy and none to what is behind it."""

import json

import pytest

import envoy_proxy
import resources
from agent import Agent
from connect_table import ANSWERS, by_proxy, start_proxy, wrapped
from differential import add_oracle
from go_build import go_build
from http_cases import Http, fields_of
from pki import Pki
from resources import Folder, route, route_config, virtual_host
from testbed import EXAMPLE, EXIT_TIMEOUT_S, VIP, Testbed
from testbed import PORT as FRONTEND_PORT
from tls_table import UPSTREAM

HIDDEN, BACKEND_PORT, FIRST_PORT = "10.99.1.1", 9090, 20000
CALL_S = 15  # more than a way needs to be opened; who never hears of it waits as long
ASKED = [f"CONNECT {HIDDEN}:{FIRST_PORT + number} HTTP/1." for number in range(len(ANSWERS))]


def start_answering_proxy(bed):
    add_oracle(bed)
    bed.lab.ip("backends", "addr", "add", HIDDEN, "dev", "lo")
    answers = [[answer.text.decode("latin-1"), answer.behind] for answer in ANSWERS]
    return start_proxy(bed, json.dumps({"first": FIRST_PORT, "port": BACKEND_PORT, "answers": answers}))


def path_of(number):
    return f"/row{number}.T/M"


def routes():
    rows = [route(path_of(number), f"row{number}") for number in range(len(ANSWERS))]
    return route_config("routes", virtual_host("all", ["*"], *rows))


def members_of(number):
    """Of an answer's cluster: a port of the backend, which only the proxy knows."""
    made = resources.endpoints(f"row{number}", (HIDDEN, FIRST_PORT + number))
    made["endpoints"][0]["lb_endpoints"][0]["metadata"] = by_proxy()
    return made


def complaints(whose, opened, known_of):
    """opened: of each answer whether a call got through. known_of(answer): why that differs, "" = it does not,
    None = it may."""
    for answer, opens in zip(ANSWERS, opened, strict=True):
        known = known_of(answer)
        if known is not None and (opens == answer.opens) == bool(known):
            yield f"{answer.label}: {whose} {'opens' if opens else 'does not open'}; known is {known!r}"


# -- gRPC, in plain text

class Answered:
    """shuntd, C-core and grpc-go."""

    def __init__(self, bed, program):
        self.bed = bed
        self.proxy = start_answering_proxy(bed)
        backend = bed.start_grpc_backend("hidden", HIDDEN, BACKEND_PORT)
        bed.wait_connect("backends", HIDDEN, BACKEND_PORT, backend)
        folder = Folder(bed.xds_folder)
        folder.set(resources.listener("web", "routes"), routes(), *map(members_of, range(len(ANSWERS))), *(
            {**resources.cluster(f"row{number}"), "transport_socket": wrapped()} for number in range(len(ANSWERS))))
        for ns in ("oracle", "lb"):
            bed.start_xds(ns=ns)
        bed.start_daemon()
        env = {"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json"), "GRPC_EXPERIMENTAL_XDS_HTTP_CONNECT": "true"}
        self.ours = Agent(bed.lab, "client", "ours", "grpc_agent.py")
        self.core = Agent(bed.lab, "oracle", "core", "grpc_agent.py", env=env)
        self.go = Agent(bed.lab, "oracle", "go", "go_agent.py", program, "xds:///web", env=env)

    def ask(self):
        """For each answer whether a call got through: ([with us], [with C-core], [with grpc-go])."""
        calls = [{"authority": "web", "path": path_of(n), "metadata": [], "timeout": CALL_S}
                 for n in range(len(ANSWERS))]
        self.core.begin(target="xds:///{}", calls=calls, parallel=len(calls))
        self.ours.begin(target=f"{VIP}:{FRONTEND_PORT}", calls=calls, parallel=len(calls))
        go = [self.go.ask(method=call["path"], count=1, headers={}) for call in calls]
        core, ours = self.core.answer(), self.ours.answer()
        return [a["code"] == "OK" for a in ours], [a["code"] == "OK" for a in core], [bool(a["answers"]) for a in go]


@pytest.mark.timeout(600)  # the program is built once, of many packages
def test_hc_10_the_same_answers_open_the_way_as_with_grpc(lab, tmp_path):
    """HC-08, HC-11, HC-12."""
    world = Answered(Testbed(lab), go_build("grpcgo", ".", tmp_path / "bin" / "grpcgo", timeout=380))
    ours, core, go = world.ask()
    wrong = [*complaints("shuntd", ours, lambda answer: ""), *complaints("C-core", core, lambda answer: answer.core),
             *complaints("grpc-go", go, lambda answer: answer.go)]
    assert not wrong, "\n".join(wrong)
    heard = world.proxy.output()
    assert all(heard.count(line) >= 3 for line in ASKED), heard  # of each of the three
    assert heard.count(" bytes behind the answer") >= 3 and "\n0 bytes behind" not in heard, heard
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


# -- Envoy, whose transport does HTTP/2 with TLS alone

def envoy_configuration(authority):
    config = envoy_proxy.configuration(routes(), {}, [])
    tls = {"name": "tls", "typed_config": {"@type": UPSTREAM, "common_tls_context": {
        "alpn_protocols": ["h2"], "validation_context": {"trusted_ca": {"filename": str(authority)}}}}}
    for number in range(len(ANSWERS)):
        members = {k: v for k, v in members_of(number).items() if k != "@type"}
        config["static_resources"]["clusters"].append({
            **envoy_proxy.cluster(f"row{number}", []), "load_assignment": members, "transport_socket": wrapped(tls)})
    return config


@pytest.mark.skipif(not envoy_proxy.BINARY.exists(), reason="no Envoy")
def test_hc_10_the_same_answers_open_the_way_as_with_envoy(lab, tmp_path):
    """HC-08, HC-11. What shuntd does with each, the test beside it shows."""
    bed = Testbed(lab)
    made = Pki(tmp_path / "pki")
    made.leaf("hidden", made.authority("ca"), f"IP:{HIDDEN}")
    proxy = start_answering_proxy(bed)
    bed.lab.start("backends", "hidden", ["nghttpd", "-a", HIDDEN, "-d", tmp_path, str(BACKEND_PORT),
                                         made.folder / "hidden.key", made.folder / "hidden.pem"])
    bed.wait_connect("backends", HIDDEN, BACKEND_PORT)
    envoy_proxy.start(bed, "oracle", envoy_configuration(made.folder / "ca.pem"))
    asked = [{"fields": fields_of(Http("row", path_of(n)))} for n in range(len(ANSWERS))]
    answers = Agent(lab, "oracle", "client", "h2_agent.py").ask(
        ip=envoy_proxy.ADDRESS, port=envoy_proxy.PORT, requests=asked, timeout=CALL_S)
    wrong = list(complaints("Envoy", [a["status"] == 404 for a in answers], lambda answer: answer.envoy))
    assert not wrong, "\n".join(wrong)
    assert all(line in proxy.output() for line in ASKED), proxy.output()
