# SPDX-License-Identifier: Apache-2.0
"""What istiod answered to Shunt is taken, warned of where Shunt does less, and requests go as the
VirtualService says. The resources stand in istio/."""

import json
import shutil

import pytest

import h2load
from agent import Agent
from testbed import EXIT_TIMEOUT_S, HERE, PORT, VIP, Testbed

HOST = "echo.default.svc.cluster.local:7070"
BACKENDS = {"v1": "10.82.1.1", "v2": "10.82.1.2"}
SIZES = {"v1": 600, "v2": 900}  # of an answer
RESOURCES = {path.stem: json.loads(path.read_text()) for path in (HERE / "istio").glob("*.json")}
# What routes ask for and Shunt does not do, each told once.
WARNINGS = ("request_mirror_policies", "retriable-status-codes")


class Bed(Testbed):
    """The frontend's target is the service, and so is its authority."""

    def config_text(self):
        text = super().config_text()
        assert "target: web}" in text
        return text.replace("target: web}", f'target: "{HOST}", authority: "{HOST}"}}')


@pytest.fixture(name="bed")
def fixture_bed(lab):
    bed = Bed(lab)
    for name, ip in BACKENDS.items():
        bed.add_backend_address(ip)
        bed.start_http_backend(name, ip, SIZES[name])
        bed.wait_connect("backends", ip, PORT)
    for path in (HERE / "istio").glob("*.json"):
        shutil.copy(path, bed.xds_folder)
    bed.start_xds()
    bed.start_daemon()
    yield bed
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def name_of(resource):
    return resource.get("cluster_name") or resource["name"]


def test_resources_of_istiod_are_taken_and_requests_go_by_them(bed):
    shown = bed.show("xds")
    assert {r["name"] for r in shown["resources"]} == {name_of(r) for r in RESOURCES.values()}
    assert {r["state"] for r in shown["resources"]} == {"ACKED"}, shown["resources"]
    assert shown["server"]["nacks"] == 0
    warned = [line for line in bed.daemon.output().splitlines() if "level=warn" in line]
    for what in WARNINGS:
        assert sum(what in line for line in warned) == 1, (what, warned)
    assert "left out" not in bed.xds.output()

    report = bed.run_h2load(requests=4000, clients=4, streams=8)  # below its circuit breaker
    assert report.perfect, report
    assert abs(report.split(SIZES["v1"], SIZES["v2"])[0] / 4000 - 0.75) < 0.05
    client = Agent(bed.lab, "client", "client", "h2_agent.py")
    fields = [[":method", "GET"], [":scheme", "http"], [":path", h2load.MARK],
              [":authority", "any.test"], ["x-kind", "abc"]]
    answers = client.ask(ip=VIP, port=PORT, timeout=30,
                         requests=[{"fields": fields, "alone": False}] * 20)
    lengths = {dict(answer["fields"])["content-length"] for answer in answers}
    assert lengths == {str(SIZES["v2"])}, answers
