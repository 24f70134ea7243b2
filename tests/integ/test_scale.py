# SPDX-License-Identifier: Apache-2.0
"""A thousand clusters, a route to each, and endpoints that are replaced all the time: every cluster
serves, no request fails, and updates are taken together. What that costs, `tools/bench clusters` and
`tools/bench updates` measure."""

import pytest

from lab import wait_until
from lab_fixtures import check_end
from scale_world import ScaleWorld

N_CLUSTERS = 1000
N_ENDPOINTS = 2
RATE, SECONDS = 300, 8  # of updates
PATIENCE_S = 30


@pytest.mark.parametrize("protocol", ["sotw", "delta"])
def test_a_thousand_clusters_serve_while_their_endpoints_change(lab, protocol):
    with ScaleWorld(lab, protocol, N_CLUSTERS, N_ENDPOINTS) as world:
        bed = world.bed
        world.go()
        bed.start_daemon()
        report = world.ask_all(1)
        assert report.perfect, report
        clusters = world.clusters()
        assert len(clusters) == N_CLUSTERS
        assert {(c["ok"], c["failed"]) for c in clusters.values()} == {(4, 0)}

        before = bed.show("info")["snapshots_published"]
        world.churn(RATE, SECONDS)
        while not world.churned():
            report = world.ask_all(1)
            assert report.perfect, report
        sent = world.churned()["sent"]
        assert sent == RATE * SECONDS
        # Each endpoint that comes is CONNECTING, then READY, and another one goes.
        published = bed.show("info")["snapshots_published"] - before
        assert published < sent, "updates are not taken together"
        wait_until(world.all_ready, PATIENCE_S, "every cluster READY")
        report = world.ask_all(1)
        assert report.perfect, report
        assert all(c["failed"] == 0 for c in world.clusters().values())
        shown = bed.show("xds")
        assert shown["server"]["nacks"] == shown["server"]["undecodable"] == 0
        check_end(bed)
