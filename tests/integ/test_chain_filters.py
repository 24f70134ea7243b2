# SPDX-License-Identifier: Apache-2.0
"""Filters that gRPC's servers do not know, faults and sessions, within filter chains: the same chains, given to Envoy
and to shuntd, do the same. Each chain is that of one source address, and has the same routes."""

import re

import pytest

import envoy_proxy
import resources
from agent import Agent
from http_cases import BACKENDS, PORT, Http, as_grpc, fields_of, outcome
from lab import wait_until
from listener_table import ROUTER_FILTER, session_filter
from policy_cases import FAULT, fixed_delay, grpc_abort, http_abort
from resources import HTTP_MANAGER, virtual_host
from routing_cases import ALPHA, BETA
from test_envoy import start_peers
from testbed import EXIT_TIMEOUT_S, VIP, Testbed
from testbed import PORT as FRONTEND_PORT

NAME, PAIR = "socket", "pair"
START_S, TIMEOUT_S = 45, 10
DELAY_S = 0.3
LEAST_S = DELAY_S - 0.01  # Envoy's timers count from when its loop last looked at the clock
N = 20
NETS = {"Envoy": "127.0.0", "shuntd": "10.81.0"}


def fault(**fields):
    return {"name": "fault", "typed_config": {"@type": FAULT, **fields}}


SESSION = session_filter(path="/", ttl="100s")
SESSION["typed_config"]["session_state"]["name"] = "envoy.http.stateful_session.cookie"  # by which Envoy finds it
# {last byte of the source: its chain's filters}
CHAINS = {
    1: [],  # of who looks whether there is a listener
    2: [],
    3: [fault(**http_abort(418))],
    4: [fault(**grpc_abort(7))],
    5: [fault(**fixed_delay(f"{DELAY_S}s"))],
    6: [fault(**fixed_delay(f"{DELAY_S}s"), **http_abort(503))],
    7: [SESSION],
    8: [fault(**http_abort(418)), SESSION],
    9: [{**fault(**http_abort(418)), "disabled": True}],
}
DELAYED, ABORTED = (5, 6), (3, 4, 6, 8)
CALL = Http("get", "/x.T/M")
CALLS = (CALL, as_grpc(CALL))


def chain(last, filters, net):
    routes = {"name": "routes", "virtual_hosts": [virtual_host("all", ["*"], resources.route("/", PAIR))]}
    manager = {"@type": HTTP_MANAGER, "stat_prefix": "chain", "codec_type": "HTTP2", "generate_request_id": False,
               "route_config": routes, "http_filters": [*filters, ROUTER_FILTER]}
    return {"filter_chain_match": {"source_prefix_ranges": [{"address_prefix": f"{net}.{last}", "prefix_len": 32}]},
            "filters": [{"name": "hcm", "typed_config": manager}]}


def listener(net, ip, port):
    return {"name": NAME, "address": envoy_proxy.address_of(ip, port),
            "filter_chains": [chain(last, filters, net) for last, filters in CHAINS.items()]}


class Peers:
    """Envoy and shuntd, and who asks them from an address of a chain."""

    def __init__(self, bed):
        self.bed = bed
        bed.listener = NAME
        both = [(BACKENDS[name], PORT) for name in (ALPHA, BETA)]
        start_peers(bed, [resources.cluster(PAIR), resources.endpoints(PAIR, *both), {
            "@type": resources.LISTENER, **listener(NETS["shuntd"], VIP, FRONTEND_PORT)}])
        for last in [*CHAINS][1:]:
            bed.lab.address("client", "c0", f"{NETS['shuntd']}.{last}/24")
        envoy_proxy.start(bed, "oracle", {
            "node": {"id": "oracle", "cluster": "oracle"}, "static_resources": {
                "listeners": [listener(NETS["Envoy"], envoy_proxy.ADDRESS, envoy_proxy.PORT)],
                "clusters": [envoy_proxy.cluster(PAIR, both)]}})
        bed.start_xds()
        bed.start_daemon()
        self.agents = {"Envoy": Agent(bed.lab, "oracle", "oracle", "h2_agent.py"),
                       "shuntd": Agent(bed.lab, "client", "ours", "h2_agent.py")}
        self.where = {"Envoy": (envoy_proxy.ADDRESS, envoy_proxy.PORT), "shuntd": (VIP, FRONTEND_PORT)}
        for peer in self.agents:
            wait_until(lambda: {outcome(a) for a in self.ask(peer, 2, *[CALL] * 8)}  # pylint: disable=W0640
                       == {ALPHA, BETA}, START_S, f"both backends through {peer}")

    def ask(self, peer, last, *calls, cookie=None):
        more = [["cookie", cookie]] if cookie else []
        ip, port = self.where[peer]
        answers = self.agents[peer].ask(ip=ip, port=port, source=[f"{NETS[peer]}.{last}", 0], timeout=TIMEOUT_S,
                                        requests=[{"fields": [*fields_of(call), *more]} for call in calls])
        return [{**answer, "call": call} for answer, call in zip(answers, calls)]


@pytest.fixture(name="peers")
def fixture_peers(lab):
    if not envoy_proxy.BINARY.exists():
        pytest.skip("no Envoy")
    made = Peers(Testbed(lab))
    yield made
    assert made.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def shown(answer):
    """Who of the two answers is chance."""
    return outcome(answer).replace(BETA, ALPHA)


def test_each_chain_does_with_requests_what_envoy_does(peers):
    """A36-09: faults and sessions of a chain are for its connections, and for no others."""
    wrong = []
    for last in CHAINS:
        theirs, ours = (peers.ask(peer, last, *CALLS) for peer in ("Envoy", "shuntd"))
        for call, their, our in zip(CALLS, theirs, ours):
            if shown(their) != shown(our) or (shown(our) != ALPHA) != (last in ABORTED):
                wrong.append(f"chain {last}, {call.label}: Envoy {shown(their)}, shuntd {shown(our)}")
            wrong += [f"chain {last}, {call.label}: {peer} took {answer['seconds']:.3f} s"
                      for peer, answer in (("Envoy", their), ("shuntd", our))
                      if (answer["seconds"] >= LEAST_S) < (last in DELAYED)]
    assert not wrong, "\n".join(wrong)


def cookie_of(answer):
    """(the cookie as a client sends it back, its attributes); None = none is set."""
    set_ = [value for name, value in answer["fields"] if name == "set-cookie"]
    if not set_:
        return None
    value, *attributes = re.split(r"; *", set_[0])
    return value, sorted(attribute.lower() for attribute in attributes)


def test_a_session_of_a_chain_stays_with_its_backend_as_envoys_does(peers):
    """A36-09: and in no other chain a cookie is set, or looked at."""
    found = {}
    for peer in NETS:
        first, = peers.ask(peer, 7, CALL)
        cookie, attributes = cookie_of(first)
        found[peer] = attributes
        answers = peers.ask(peer, 7, *[CALL] * N, cookie=cookie)
        assert {outcome(answer) for answer in answers} == {outcome(first)}, peer
        assert {outcome(a) for a in peers.ask(peer, 2, *[CALL] * N, cookie=cookie)} == {ALPHA, BETA}, peer
        assert {outcome(a) for a in peers.ask(peer, 7, *[CALL] * N)} == {ALPHA, BETA}, peer
        assert [cookie_of(a) for a in peers.ask(peer, 2, CALL)] == [None], peer
    assert found["Envoy"] == found["shuntd"]
