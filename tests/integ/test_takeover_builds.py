# SPDX-License-Identifier: Apache-2.0
"""Takeovers between this build and one of another commit, SHUNT_OLD_BUILD (docs/testing.md). What the one has learned
and the other knows is in test_takeover_state.py, for these builds as well."""

import re

import pytest

from lab import wait_until
from memif_world import Switch
from takeover_world import OLD, WAIT_S, Calls, Streams, clean, count_resets, follow, info, resets, with_old
from testbed import BUILD, WORKERS

one_queue = pytest.mark.skipif(len(WORKERS) > 1, reason="af_xdp uses one queue of a veth")


@with_old
@pytest.mark.timeout(300)
@pytest.mark.parametrize("device", ("af_packet", pytest.param("af_xdp", marks=one_queue), "memif_client"))
def test_fl_181_an_upgrade_a_rollback_and_an_upgrade_lose_nothing(make_world, lab, device):
    """Of two builds. Streams outlive all three."""
    world = make_world(device=device)
    bed = world.bed
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 600\n"
    bed.build = OLD
    if device == "memif_client":
        Switch(bed)
    world.start()
    bed.shuntctl("set", "endpoint", "blue/%s:%s" % world.addresses("blue")[0], "down")
    count_resets(lab, "client")
    streams, calls = Streams(bed), Calls(bed)
    older = []
    for number, build in enumerate((BUILD, OLD, BUILD), 2):
        bed.build = build
        older.append(follow(bed, number))
        taken = re.search('msg="taken from the older process" (.*)', bed.daemon.output())[1]
        print(f"{info(bed)['older']}: {taken}, takeover_gap_ms {info(bed)['takeover_gap_ms']}")
        assert "overrides=1 " in taken and "unused=0" in taken
    assert info(bed)["processes_behind"] == 3
    assert streams.finish()
    wait_until(lambda: not any(p.alive() for p in older), WAIT_S, "older processes to end")
    assert calls.finish()
    assert [p.wait(1) for p in older] == [0] * len(older)
    assert all(clean(bed, p.name) for p in older)
    assert resets(lab, "client") == 0
