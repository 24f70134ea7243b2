# SPDX-License-Identifier: Apache-2.0
"""Two workers on two cores: both carry their part, and together they do what one would do."""

import os

import pytest

BOTH = (0, 1)
N_REQUESTS = int(os.environ.get("SHUNT_LONG_REQUESTS", "100000"))  # the long form has a million

pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < len(BOTH), reason="one core only")


@pytest.fixture(name="world")
def fixture_world(make_world):
    return make_world(workers=BOTH).start()


@pytest.mark.timeout(600)
def test_many_requests_over_both_workers(world):
    report = world.bed.run_h2load(requests=N_REQUESTS, clients=32, streams=8, timeout=500)
    assert report.perfect, report
    workers = world.bed.show_workers()
    assert sum(w["requests"] for w in workers) >= N_REQUESTS
    for worker in workers:
        assert worker["requests"] >= N_REQUESTS // 8, workers
        assert worker["handover"]["given"] and worker["handover"]["taken"], workers
        assert worker["handover"]["ring_full"] == 0, workers
    assert {port["steering"] for port in world.bed.show("ports")} == {"software"}
