# SPDX-License-Identifier: Apache-2.0
"""Packet I/O over every virtual device that needs no special host."""

import pytest

from testbed import WORKERS


@pytest.mark.parametrize("device", ("af_packet", "tap", "af_xdp"))
def test_a_device_carries_requests(make_world, device):
    if device == "af_xdp" and len(WORKERS) > 1:
        pytest.skip("af_xdp uses one queue of a veth")
    world = make_world(device=device).start()
    report = world.bed.run_h2load(requests=1000, clients=4, streams=4)
    assert report.perfect, report
    world.bed.run_calls("unary", count=10)
