# SPDX-License-Identifier: Apache-2.0
"""Processes that take over from one another on interfaces behind AF_XDP, which one process at a time can have: they
move, as a card does (docs/takeover.md)."""

import statistics
import time

import pytest

from lab import wait_until
from takeover_world import (GAP_MS, GIVEN, N_CRASHES, WAIT_S, Calls, Pings, Streams, clean, count_resets, crash_at_each,
                            crashes, follow, info, resets)
from testbed import WORKERS

N_TAKEOVERS = 3

pytestmark = pytest.mark.skipif(len(WORKERS) > 1, reason="af_xdp uses one queue of a veth")


@pytest.fixture(name="bed")
def fixture_bed(make_world, lab):
    world = make_world(device="af_xdp")
    world.bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 60\nlame_duck_s: 1\n"
    bed = world.start().bed
    count_resets(lab, "client")
    return bed


def nobody_was_reset(bed):
    return resets(bed.lab, "client") == 0


@pytest.mark.timeout(300)
def test_fl_120_takeovers_of_af_xdp_lose_nothing(bed):
    """Streams outlive three generations, through each of the processes that came."""
    streams = Streams(bed)
    calls = Calls(bed)
    older, gaps = [], []
    usual = Pings(bed.lab)
    time.sleep(2)
    usual_ms = usual.longest_gap_ms()
    for number in range(2, N_TAKEOVERS + 2):
        pings = Pings(bed.lab)
        older.append(follow(bed, number))
        time.sleep(1)
        told = info(bed)
        assert told["generation"] == number and told["role"] == "front"
        gaps.append(pings.longest_gap_ms())
        print(f"gap: {gaps[-1]} ms without an answer, takeover_gap_ms {told['takeover_gap_ms']:.0f}")
    assert info(bed)["processes_behind"] == N_TAKEOVERS
    (worker,) = bed.show_workers()
    assert worker["relay"]["given"] > 0 and worker["relay"]["taken"] > 0 and worker["relay"]["malformed"] == 0
    assert streams.finish()
    wait_until(lambda: not any(p.alive() for p in older), WAIT_S, "older processes to end")
    assert calls.finish()
    assert [p.wait(1) for p in older] == [0] * len(older)
    assert all(clean(bed, p.name) for p in older)
    assert nobody_was_reset(bed)
    print(f"ms without an answer: {gaps}, without a takeover {usual_ms}")
    assert statistics.median(gaps) <= GAP_MS + usual_ms, (gaps, usual_ms)


@pytest.mark.timeout(150 + 70 * N_CRASHES)
def test_fl_120_a_newer_process_that_comes_to_nothing_gives_af_xdp_back(bed):
    """One that crashes before it asks for the interfaces, and one with them in its hands; in the long form at each
    stage."""
    stages = crashes("had not asked", "had them")
    if N_CRASHES > 1:
        stages["opened interfaces, 25 ms later"] = f"heard {GIVEN} 25"
    crash_at_each(bed, stages)
    assert 'msg="device back"' in bed.daemon.output()
    assert nobody_was_reset(bed)


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
