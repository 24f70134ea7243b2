# SPDX-License-Identifier: Apache-2.0
"""The world of tests/bench/scale_server.py: many clusters, a route to each, and one nghttpd that answers
at all their addresses. tools/bench and the integration tests play in it."""

import json
import os
import sys
from resource import RLIMIT_NOFILE, getrlimit

from testbed import ROOT, Testbed, URL, XDS_ADDRESS

SERVER = ROOT / "tests" / "bench" / "scale_server.py"
SIZE = 400


class ScaleWorld:
    """Everything but the daemon runs; the server waits for go()."""

    def __init__(self, lab, protocol, n_clusters, n_endpoints):
        self.n_clusters = n_clusters
        self.bed = bed = Testbed(lab)
        bed.settings = f"xds: {{protocol: {protocol}}}\n"
        for network in ("10.82.0.0/17", "10.82.128.0/18", "10.82.192.0/19", "10.82.224.0/20"):
            lab.ip("backends", "route", "add", "local", network, "dev", "b0")
        connections = n_clusters * n_endpoints * len(bed.workers)
        # Twice, since those of before may be there still; not each machine lets us have so many.
        files = min(2 * connections + 4096, getrlimit(RLIMIT_NOFILE)[1])
        backend = bed.start_http_backend("backend", "0.0.0.0", SIZE, files=files)
        mark = lab.dir / "www-backend" / "mark"
        self.uris = lab.dir / "uris"
        paths = [f"/{i}/mark" for i in range(n_clusters)]
        for path in paths:
            at = mark.parent / path[1:]
            at.parent.mkdir()
            os.link(mark, at)
        self.uris.write_text("".join(f"{URL}{path}\n" for path in paths))
        bed.wait_connect("backends", "10.82.0.1", 8080, backend)
        pipe = lab.dir / "commands"
        os.mkfifo(pipe)
        self._commands = os.open(pipe, os.O_RDWR)
        bed.start_xds([sys.executable, SERVER, n_clusters, n_endpoints, "--listen", XDS_ADDRESS,
                       "--commands", pipe])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._commands)

    def _tell(self, line):
        os.write(self._commands, line.encode() + b"\n")

    def go(self):
        self._tell("go")

    def churn(self, rate, seconds):
        self._tell(f"churn {rate} {seconds} {self.n_clusters}")

    def churned(self):
        """What the server said at the end of it; None = it goes on."""
        lines = [line for line in self.bed.xds.output().splitlines() if '"sent"' in line]
        return json.loads(lines[-1]) if lines else None

    def ask_all(self, rounds):
        """Each of 4 clients asks every cluster so often."""
        return self.bed.run_h2load(requests=4 * rounds * self.n_clusters, clients=4, streams=4,
                                   uris=self.uris)

    def clusters(self):
        return {c["cluster"]: c for c in self.bed.show("clusters")["clusters"]}

    def all_ready(self):
        return {c["state"] for c in self.clusters().values()} == {"READY"}
