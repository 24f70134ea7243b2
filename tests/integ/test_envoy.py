# SPDX-License-Identifier: Apache-2.0
"""The same RouteConfiguration and the same requests, given to Envoy and to shuntd: the same backend
answers and sees the same path and authority, or the same status comes back.

Envoy is the oracle for plain HTTP and for what gRPC lacks; what shuntd does differently stands in
envoy_table.KNOWN with its reason. Envoy lives in a namespace with a direct way to the backends.
"""

import collections
import json
import re
import sys

import pytest

import envoy_proxy
from agent import Agent
from differential import Judge, add_oracle, far_apart
from envoy_table import KNOWN, all_resources, case_lists, clusters, routes_of
from http_cases import BACKENDS, PORT, fields_of, outcome
from policy_cases import FAULTS
from resources import Folder
from testbed import EXIT_TIMEOUT_S, HERE, VIP, Testbed
from testbed import PORT as FRONTEND_PORT

MIN_CALLS, MIN_EXPLAINED = 300, 100
EXPLAIN_EVERY = 8
TIMEOUT_S = 8


class Pair:
    """Envoy and shuntd, asked the same."""

    def __init__(self, bed):
        self.oracle = Agent(bed.lab, "oracle", "oracle", "h2_agent.py")
        self.ours = Agent(bed.lab, "client", "ours", "h2_agent.py")

    def ask(self, calls):
        wanted = [{"fields": fields_of(call), "open": getattr(call, "open", False),
                   "alone": getattr(call, "alone", False)} for call in calls]
        self.oracle.begin(ip=envoy_proxy.ADDRESS, port=envoy_proxy.PORT, requests=wanted,
                          timeout=TIMEOUT_S)
        self.ours.begin(ip=VIP, port=FRONTEND_PORT, requests=wanted, timeout=TIMEOUT_S)
        return ([{**answer, "call": call} for answer, call in zip(answers, calls)]
                for answers in (self.oracle.answer(), self.ours.answer()))


def start_peers(bed, resources):
    """What Envoy and shuntd have in common: backends, and a namespace beside them."""
    add_oracle(bed)
    bed.lab.ip("backends", "route", "add", "local", "10.82.2.0/24", "dev", "lo")
    bed.lab.start("backends", "peers", [sys.executable, HERE / "h2_peer.py", "serve", PORT])
    Folder(bed.xds_folder).set(*resources)
    for ip in BACKENDS.values():
        bed.wait_connect("backends", ip, PORT)


def start_world(bed, cases):
    start_peers(bed, all_resources(cases))
    envoy_proxy.start(bed, "oracle",
                      envoy_proxy.configuration(routes_of(cases), clusters(), [FAULTS]))
    bed.start_xds()
    bed.start_daemon()


def explained(bed, call):
    """Which share of such requests goes where, by the word of `explain`; failures as outcomes."""
    words = ["--authority", call.authority, "--path", call.path,
             "--method", getattr(call, "method", "GET")]
    words += [word for name, value in call.metadata for word in ("-H", f"{name}: {value}")]
    data = json.loads(bed.shuntctl("--json", "explain", *words))["data"]
    shares = collections.Counter()
    for row in data["clusters"]:  # one may be there twice
        shares[row["cluster"]] += float(row["percent"])
    for row in data["outcomes"]:
        code = re.search(r"fails \((\d+), HTTP (\d+)\)", row["action"])
        if code:
            shares["grpc " + code[1] if data["grpc"] == "yes" else code[2]] += float(row["percent"])
    return {name: share for name, share in shares.items() if share}


def can_be_explained(case, call):
    return (not any("typed_per_filter_config" in route for route in case.routes) and
            getattr(call, "fields", None) is None and case.name != "ghost")


def check_explain(bed, pair, quick, shares):
    """`explain` says what really becomes of requests, in words or in shares."""
    calls = [call for case in quick for call in case.calls if can_be_explained(case, call)]
    calls = calls[::EXPLAIN_EVERY]
    _, answers = pair.ask(calls)
    said = [explained(bed, call) for call in calls]
    wrong = [f"{call.path} {call.metadata}: explain says {what}, a request {outcome(answer)}"
             for call, what, answer in zip(calls, said, answers)
             if {outcome(answer).split(" path")[0]: 100.0} != what]
    for case in shares:
        call = case.calls[0]
        _, answers = pair.ask([call] * case.repeat)
        found = collections.Counter(outcome(answer) for answer in answers)
        what = explained(bed, call)
        if far_apart({k: v * case.repeat / 100 for k, v in what.items()}, found):
            wrong.append(f"{case.name}: explain says {what}, requests {found}")
    assert len(calls) >= MIN_EXPLAINED and not wrong, "\n".join(wrong)


@pytest.mark.timeout(120)
def test_same_outcome_as_envoy(lab):
    quick, shares, timed = case_lists()
    bed = Testbed(lab)
    start_world(bed, quick + shares + timed)
    pair = Pair(bed)
    judge = Judge("Envoy", KNOWN, outcome)
    judge.compare(quick, pair.ask)
    judge.compare(timed, pair.ask)
    judge.compare_shares(shares, pair.ask)
    check_explain(bed, pair, quick, shares)
    judge.conclude(MIN_CALLS, ("alpha", "beta", "404"))
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
