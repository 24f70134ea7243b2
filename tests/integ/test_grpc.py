# SPDX-License-Identifier: Apache-2.0
"""gRPC's own clients and servers on both sides, and whole gigabytes in one stream."""

import time

import pytest

SCENARIOS = ("unary", "server_streaming", "client_streaming", "bidi", "deadline", "cancellation",
             "big_message", "metadata", "statuses")
FLAT_KIB = 16 * 1024


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_calls(world, scenario):
    world.bed.run_calls(scenario)


def test_many_calls_at_once_come_back_unaltered(make_world):
    make_world(n_rpc=2).start().bed.run_calls("many", count=20_000)


@pytest.mark.parametrize("direction", ("upload", "download"))
@pytest.mark.timeout(280)
def test_a_gigabyte_in_one_stream_with_flat_memory(world, direction):
    bed = world.bed
    bed.run_calls(direction, mib=64)  # packet buffers are touched once before it is flat
    before = bed.daemon.status_kib("VmRSS")
    moving = bed.start_calls("moving", direction, mib=1024)
    samples = []
    while moving.alive():
        samples.append(bed.daemon.status_kib("VmRSS"))
        time.sleep(0.1)
    print(bed.calls_result(moving))
    assert max(samples) - before < FLAT_KIB, (before, samples)
