# SPDX-License-Identifier: Apache-2.0
"""Processes that take over from one another on interfaces behind AF_XDP, which one process at a time can have: they
move, as a card does (docs/takeover.md)."""

import pytest

from takeover_world import (GIVEN, N_CRASHES, N_TAKEOVERS, WAIT_S, Calls, Row, Streams, check_relay, count_resets,
                            crash_at_each, crashes, fail_by_config, info, resets)
from testbed import WORKERS

pytestmark = pytest.mark.skipif(len(WORKERS) > 1, reason="af_xdp uses one queue of a veth")


@pytest.fixture(name="bed")
def fixture_bed(make_world, lab):
    world = make_world(device="af_xdp")
    world.bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 600\nlame_duck_s: 1\n"
    bed = world.start().bed
    count_resets(lab, "client")
    return bed


@pytest.mark.timeout(300 + 12 * N_TAKEOVERS)
def test_fl_120_takeovers_of_af_xdp_in_a_row_lose_nothing(bed):
    """FL-220. There are always streams that outlive three generations, through each of the processes that came."""
    row, calls = Row(bed), Calls(bed)
    for told in row.each():
        if told["generation"] == 4:
            check_relay(bed.show_workers()[0])
    row.finish(calls)
    row.silences.check()


@pytest.mark.timeout(150 + 70 * N_CRASHES)
def test_fl_120_a_newer_process_that_comes_to_nothing_gives_af_xdp_back(bed):
    """A bad configuration, one that crashes before it asks for the interfaces, and one with them in its hands; in the
    long form at each stage."""
    streams = Streams(bed)
    fail_by_config(bed)
    stages = crashes("had not asked", "had them")
    if N_CRASHES > 1:
        stages["opened interfaces, 25 ms later"] = f"heard {GIVEN} 25"
    crash_at_each(bed, stages)
    assert streams.finish()
    assert 'msg="device back"' in bed.daemon.output()
    assert resets(bed.lab, "client") == 0


def test_fl_120_who_lacks_an_interface_of_the_older_one_is_refused(bed):
    """So is one that would have it by AF_PACKET."""
    serving = bed.daemon
    bed.device = "af_packet"
    bed.start_daemon(wait=False, words=["--takeover"], name="shuntd-other")
    assert bed.daemon.wait(WAIT_S) == 1
    assert "net_af_xdp,iface=lb-c is the older process's, and missing here" in bed.daemon.output()
    bed.device, bed.daemon = "af_xdp", serving
    assert info(bed)["role"] == "front"
    assert bed.run_h2load(requests=100).perfect
