# SPDX-License-Identifier: Apache-2.0
"""The same resources and the same calls, given to gRPC's own xDS client (C-core) and to shuntd:
both report the same load. The oracle lives in a namespace with a direct way to the backends, and
has a reporting server of its own."""

import pytest

from agent import Agent
from differential import add_oracle
from lab import wait_until
from resources import ADS
from test_load_reports import (CLUSTERS, NAME_SERVER, REPORTS_LIMIT_S, UPSTREAM, Sums,
                               World, cluster, endpoints, load_report)
from testbed import BUILD, EXAMPLE, EXIT_TIMEOUT_S, PORT, VIP, XDS_ADDRESS

# What no test of the other module changes.
NAMES = ("counted", "renamed", "hanging", "dropping", "narrow", "named", "measured", "unasked")
EVERYTHING = ["cpu_utilization", "mem_utilization", "application_utilization", "named_metrics.*"]


class Pair:
    def __init__(self, lab):
        self.ours = World(lab, {
            **{name: CLUSTERS[name] for name in NAMES},
            "all": [cluster("all", lrs_report_endpoint_metrics=EVERYTHING), endpoints("all")],
            "both": [cluster("both", eds_cluster_config={"eds_config": ADS,
                                                         "service_name": "both"}),
                     endpoints("both")]})
        bed = self.ours.bed
        add_oracle(bed)
        lab.resolver("oracle", NAME_SERVER)
        bed.start_name_server("oracle", 53)
        lab.start("oracle", "upstream-oracle", [
            BUILD / "tools" / "shunt-xds" / "shunt-xds", "--listen", UPSTREAM, bed.xds_folder])
        bed.wait_connect("oracle", *UPSTREAM.split(":"))
        self.server = Agent(lab, "oracle", "lrs-oracle", "lrs_agent.py", XDS_ADDRESS, UPSTREAM)
        self.calls = Agent(lab, "oracle", "oracle", "grpc_agent.py", env={
            "GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json"),
            "GRPC_EXPERIMENTAL_XDS_ORCA_LRS_PROPAGATION": "true"})

    def call(self, name, count, *metadata, parallel=8, timeout=30):
        calls = [{"authority": "web", "path": f"/{name}.T/M", "metadata": metadata,
                  "timeout": timeout}] * count
        self.calls.begin(target="xds:///{}", calls=calls, parallel=parallel)
        ours = self.ours.calls.ask(target=f"{VIP}:{PORT}", calls=calls, parallel=parallel)
        return self.calls.answer(), ours

    def sums(self, name, n_ends):
        """(the oracle's, ours) when each has told so many ends and drops."""
        both = []

        def check():
            reports = self.server.ask(op="reports"), self.ours.reports()
            both[:] = [Sums(name, r) for r in reports]
            return all(ends_of(s) >= n_ends for s in both)
        try:
            wait_until(check, REPORTS_LIMIT_S, "reports", interval=0.1)
        except TimeoutError:
            raise AssertionError([(shown(s), s.last) for s in both]) from None
        return both


def ends_of(sums):
    return sums.total("ok") + sums.total("error") + sums.drops["all"]


def shown(sums):
    """What must be equal: names, sums and drops. Which locality serves a call is drawn."""
    return {"service": sums.last["service"], "places": sorted(sums.places),
            **{kind: sums.total(kind) for kind in ("issued", "ok", "error")},
            "drops": dict(sums.drops), "metrics": dict(sums.metrics)}


@pytest.fixture(name="pair", scope="module")
def fixture_pair(module_lab):
    pair = Pair(module_lab)
    yield pair
    assert pair.ours.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


REPORT = load_report(cpu_utilization=0.25, mem_utilization=0.5, application_utilization=0.125,
                     eps=3, rps_fractional=7, named_metrics={"queue": 4, "other": 9},
                     utilization={"disk": 0.5}, request_cost={"time": 2})


@pytest.mark.parametrize("name,count,metadata,more", (
    ("counted", 60, (), {}),
    ("renamed", 20, (["x-script", "14"],), {}),
    ("both", 20, (["x-script", "5"],), {}),
    ("hanging", 5, (["x-script", "0wait8000"],), {"timeout": 3}),
    ("narrow", 9, (["x-script", "0wait5000"],), {"parallel": 9}),
    ("named", 20, (), {}),
    ("measured", 20, (REPORT,), {}),
    ("all", 20, (REPORT,), {}),
    ("unasked", 20, (REPORT,), {}),
))
def test_both_report_the_same(pair, name, count, metadata, more):
    theirs, ours = pair.call(name, count, *metadata, **more)
    assert sorted(a["code"] for a in theirs) == sorted(a["code"] for a in ours)
    their_sums, our_sums = pair.sums(name, count)
    assert shown(our_sums) == shown(their_sums)


def test_both_report_drops_the_same(pair):
    """Which calls are dropped is drawn: the names are the same, and nothing is missing."""
    pair.call("dropping", 200)
    for sums in pair.sums("dropping", 200):
        assert ends_of(sums) == 200 and sums.total("issued") == sums.total("ok")
        assert sums.drops["half"] == sums.drops["all"] and set(sums.drops) == {"half", "all"}
