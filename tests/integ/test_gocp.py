# SPDX-License-Identifier: Apache-2.0
"""The demo's steps with another management server: go-control-plane instead of shunt-xds."""

import time

import pytest

import resources
from go_build import go_build
from lab import wait_until
from test_xds import wait_for_split
from testbed import XDS_ADDRESS
from world import ROUTES, RPC_PATH, split_of


pytestmark = pytest.mark.timeout(500)  # the server is built once, of many packages


@pytest.fixture(name="gocp", scope="module")
def fixture_gocp(tmp_path_factory):
    return go_build("gocp", ".", tmp_path_factory.mktemp("gocp") / "gocp")


@pytest.mark.parametrize("protocol", ["sotw", "delta"])
def test_demo_steps_with_go_control_plane(make_world, gocp, protocol):
    world = make_world()
    bed = world.bed
    bed.settings = f"xds: {{protocol: {protocol}}}\n"
    server = [gocp, "-listen", XDS_ADDRESS, bed.xds_folder]
    world.start(xds_argv=server)
    report = bed.run_h2load(requests=20_000)
    assert report.perfect, report
    assert abs(split_of(report)[0] / 20_000 - 0.75) < 0.02
    bed.run_calls("bidi")

    load = bed.start_h2load("load", requests=24_000, clients=8, streams=8, rate=500)
    world.set_weights(20, 80)
    wait_for_split(bed, 20)
    bed.xds.kill()
    time.sleep(0.5)
    bed.start_xds(server)
    report = bed.h2load_report(load)
    assert report.perfect, report
    world.set_weights(75, 25)  # the new server is heard
    wait_for_split(bed, 75)

    world.backends["blue-1"].kill()
    time.sleep(0.5)
    report = bed.run_h2load(requests=5000)
    assert report.perfect, report

    shown = bed.show("xds")
    assert shown["server"]["protocol"] == protocol
    assert shown["server"]["nacks"] == shown["server"]["undecodable"] == 0
    assert {r["state"] for r in shown["resources"]} == {"ACKED"}
    # go-control-plane versions each resource by its content in delta, the whole snapshot in SotW.
    versions = {r["version"] for r in shown["resources"]}
    assert (len(versions) == 1) == (protocol == "sotw"), versions


def test_delta_unsubscribes_and_hears_of_removals(make_world, gocp):
    world = make_world()
    bed = world.bed
    bed.settings = "xds: {protocol: delta}\n"
    world.start(xds_argv=[gocp, "-listen", XDS_ADDRESS, bed.xds_folder])

    def states():
        return {(r["type"], r["name"]): r["state"] for r in bed.show("xds")["resources"]}

    before = states()
    assert ("cluster", "green") in before
    world.folder.put(resources.route_config(ROUTES, resources.virtual_host(
        "all", ["*"], resources.route(RPC_PATH, "rpc"), resources.route("/", "blue"))))
    wait_until(lambda: ("cluster", "green") not in states(), 30, "green unsubscribed from")
    world.set_weights(75, 25)
    wait_until(lambda: states() == before, 30, "green subscribed to again")
    # What a server removes is kept (gRFC A88), and shown.
    world.folder.remove(resources.cluster("blue"))
    wait_until(lambda: states()[("cluster", "blue")] == "DOES_NOT_EXIST", 30, "blue removed")
    report = bed.run_h2load(requests=1000)
    assert report.perfect, report
    world.set_weights(75, 25)
    wait_until(lambda: states() == before, 30, "blue there again")
