# SPDX-License-Identifier: Apache-2.0
"""A thousand clusters, a route to each, and endpoints that are replaced all the time: every cluster
serves, no request fails, and updates are taken together. What that costs, `tools/bench clusters` and
`tools/bench updates` measure."""

import json
import os
import sys

import pytest

from conftest import check_end
from lab import wait_until
from testbed import ROOT, Testbed, URL, XDS_ADDRESS

BENCH = ROOT / "tests" / "bench"
N_CLUSTERS = 1000
N_ENDPOINTS = 2
RATE, SECONDS = 300, 8  # of updates
SIZE = 400
PATIENCE_S = 30


class Scale:
    """The world of scale_server.py: one nghttpd answers at all its addresses."""

    def __init__(self, lab, protocol):
        self.bed = bed = Testbed(lab)
        bed.settings = f"xds: {{protocol: {protocol}}}\n"
        lab.ip("backends", "route", "add", "local", "10.82.0.0/18", "dev", "b0")
        backend = bed.start_http_backend("backend", "0.0.0.0", SIZE)
        mark = lab.dir / "www-backend" / "mark"
        self.uris = lab.dir / "uris"
        paths = [f"/{i}/mark" for i in range(N_CLUSTERS)]
        for path in paths:
            at = mark.parent / path[1:]
            at.parent.mkdir()
            os.link(mark, at)
        self.uris.write_text("".join(f"{URL}{path}\n" for path in paths))
        bed.wait_connect("backends", "10.82.0.1", 8080, backend)
        pipe = lab.dir / "commands"
        os.mkfifo(pipe)
        self.commands = os.open(pipe, os.O_RDWR)
        bed.start_xds([sys.executable, BENCH / "scale_server.py", N_CLUSTERS, N_ENDPOINTS,
                       "--listen", XDS_ADDRESS, "--commands", pipe])

    def close(self):
        os.close(self.commands)

    def tell(self, line):
        os.write(self.commands, line.encode() + b"\n")

    def said(self, word):
        """What the server said with this word in it; None = nothing yet."""
        lines = [line for line in self.bed.xds.output().splitlines() if word in line]
        return json.loads(lines[-1]) if lines else None

    def ask_all(self, rounds):
        """Each of 4 clients asks every cluster so often."""
        return self.bed.run_h2load(requests=4 * rounds * N_CLUSTERS, clients=4, streams=4,
                                   uris=self.uris)

    def clusters(self):
        return {c["cluster"]: c for c in self.bed.show("clusters")["clusters"]}


@pytest.mark.parametrize("protocol", ["sotw", "delta"])
def test_a_thousand_clusters_serve_while_their_endpoints_change(lab, protocol):
    world = Scale(lab, protocol)
    bed = world.bed
    try:
        world.tell("go")
        bed.start_daemon()
        report = world.ask_all(1)
        assert report.perfect, report
        clusters = world.clusters()
        assert len(clusters) == N_CLUSTERS
        assert {(c["ok"], c["failed"]) for c in clusters.values()} == {(4, 0)}

        before = bed.show("info")["snapshots_published"]
        world.tell(f"churn {RATE} {SECONDS} {N_CLUSTERS}")
        while not world.said('"sent"'):
            report = world.ask_all(1)
            assert report.perfect, report
        sent = world.said('"sent"')["sent"]
        assert sent == RATE * SECONDS
        # Each endpoint that comes is CONNECTING, then READY, and another one goes.
        published = bed.show("info")["snapshots_published"] - before
        assert published < sent, "updates are not taken together"
        wait_until(lambda: {c["state"] for c in world.clusters().values()} == {"READY"}, PATIENCE_S,
                   "every cluster READY")
        report = world.ask_all(1)
        assert report.perfect, report
        assert all(c["failed"] == 0 for c in world.clusters().values())
        shown = bed.show("xds")
        assert shown["server"]["nacks"] == shown["server"]["undecodable"] == 0
        check_end(bed)
    finally:
        world.close()
