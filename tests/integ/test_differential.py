# SPDX-License-Identifier: Apache-2.0
"""The same resources and the same calls, given to gRPC's own xDS client (C-core) and to shuntd: the
same backend answers at the same attempt, or the call fails with the same status; what is drawn at
random has the same shares; what ends by time ends at the same time.

C-core is the oracle; what shuntd does differently stands in differential_table.KNOWN with its
reason. C-core takes the virtual host from its target's name, so each authority is a channel of its
own and has a listener of its own; all listeners lead to one route configuration. The oracle lives
in a namespace with a direct way to the backends and its own copy of the management server.
"""

import pytest

from agent import Agent
from differential import Judge, add_oracle
from differential_table import BACKENDS, KNOWN, PORT, ROUTES, all_resources, case_lists
from lab import wait_until
from resources import Folder
from routing_cases import MAIN
from testbed import EXAMPLE, EXIT_TIMEOUT_S, VIP, Testbed
from testbed import PORT as FRONTEND_PORT

# C-core ends deadlines of the configuration 1.2 to 1.8 s early, by a constant of each process.
CORE_EARLY_S = 2
MIN_CALLS, MIN_CASES = 300, 60


class Pair:
    """C-core and shuntd, asked the same."""

    def __init__(self, bed):
        """The daemon starts while the oracle already waits for a cluster that will never come."""
        env = {"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json")}
        self.oracle = Agent(bed.lab, "oracle", "oracle", "grpc_agent.py", env=env)
        self.ours = Agent(bed.lab, "client", "ours", "grpc_agent.py")
        self.oracle.begin(target="xds:///{}", calls=[
            {"authority": MAIN, "path": "/any.S/M", "metadata": []}])
        bed.start_daemon()
        self.oracle.answer()

    def ask(self, calls, parallel=16):
        wanted = [{"authority": c.authority, "path": c.path, "metadata": c.metadata, "body": c.body,
                   "timeout": c.timeout} for c in calls]
        self.oracle.begin(target="xds:///{}", calls=wanted, parallel=parallel)
        self.ours.begin(target=f"{VIP}:{FRONTEND_PORT}", calls=wanted, parallel=parallel)
        return self.oracle.answer(), self.ours.answer()

    def ask_at_once(self, calls):
        return self.ask(calls, 64)


def outcome(answer):
    """What is compared: who answered or which status, at which attempt if that was told, and what
    came back of the metadata."""
    attempt = dict(answer["trailing"]).get("x-attempt")
    what = answer["backend"] if answer["code"] == "OK" else answer["code"]
    words = [what] if attempt is None else [what, "attempt", attempt]
    return " ".join(words + [word for key, value in answer["trailing"] if key.startswith("x-echo")
                             for word in (key, value)])


def check_refused_change(bed, folder, cases, judge, pair):
    """A route configuration that both refuse changes nothing."""
    *_, routes = all_resources(cases)
    extra = {"name": "bad", "domains": ["bad.test"], "routes": [{"route": {"cluster": "alpha"}}]}
    folder.put({**routes, "virtual_hosts": [extra, *routes["virtual_hosts"]]})
    wait_until(lambda: state_of(bed, ROUTES) == "NACKED", 30, "shuntd's refusal")
    wait_until(lambda: "event=nack" in bed.oracle_xds.output(), 30, "C-core's refusal")
    judge.compare(cases[:12], pair.ask)


def state_of(bed, name):
    return {r["name"]: r for r in bed.show("xds")["resources"]}[name]["state"]


def start_world(bed, cases):
    add_oracle(bed)
    for name, ip in BACKENDS.items():
        bed.add_backend_address(ip)
        bed.start_grpc_backend(name, ip, PORT)
    folder = Folder(bed.xds_folder)
    folder.set(*all_resources(cases))
    for name, ip in BACKENDS.items():
        bed.wait_connect("backends", ip, PORT)
    bed.oracle_xds = bed.start_xds(ns="oracle")
    bed.start_xds()
    return folder


@pytest.mark.timeout(150)
def test_same_outcome_as_grpc_core(lab):
    quick, shares, timed = case_lists()
    everything = quick + shares + timed
    bed = Testbed(lab)
    folder = start_world(bed, everything)
    pair = Pair(bed)
    judge = Judge("C-core", KNOWN, outcome, CORE_EARLY_S)
    judge.compare(quick, pair.ask)
    judge.compare(timed, pair.ask_at_once)
    judge.compare_shares(shares, pair.ask_at_once)
    check_refused_change(bed, folder, quick + timed, judge, pair)
    assert len(everything) >= MIN_CASES
    judge.conclude(MIN_CALLS, ("alpha", "beta", "UNAVAILABLE"))
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0
