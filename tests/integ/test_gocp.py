# SPDX-License-Identifier: Apache-2.0
"""The demo's steps with another management server: go-control-plane instead of shunt-xds."""

import time

import pytest

from go_build import go_build
from test_xds import wait_for_split
from testbed import XDS_ADDRESS
from world import split_of


@pytest.fixture(name="gocp", scope="module")
def fixture_gocp(tmp_path_factory):
    return go_build("gocp", ".", tmp_path_factory.mktemp("gocp") / "gocp")


def test_demo_steps_with_go_control_plane(make_world, gocp):
    world = make_world()
    bed = world.bed
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

    world.backends["blue-1"].kill()
    time.sleep(0.5)
    report = bed.run_h2load(requests=5000)
    assert report.perfect, report
