# SPDX-License-Identifier: Apache-2.0
"""Nobody between the two ends: what the balancers' latency is above, on each transport."""

import load_agent
from compare_bed import OnVeth, RUN_TIMEOUT_S, Subject, cores, first, latency_words, path, report_of, said
from compare_sample import Sample
from testbed import DEVICES, PORT, Testbed, VIP

NAME = "direct"


class DirectOnVeth(OnVeth):
    """An nghttpd in the balancer's place."""

    name = NAME
    is_peer = routes = False

    def figures(self, seconds, rate):
        yield from self.latency_figures(seconds, rate)

    @staticmethod
    def version():
        return said(["nghttpd", "--version"], "nghttpd ")

    def start(self):
        return self.lab.start("lb", self.name, first(
            "nghttpd", "--no-tls", "-a", VIP, "-d", self.lab.dir / "www", "-m", "1000", PORT), cpu=cores()[0])


class DirectOnMemif(Subject):
    """The two ends of one shunt-load on the same memif."""

    name = NAME
    transport = "memif"
    is_peer = routes = False
    version = DirectOnVeth.version

    def build(self):
        self.bed = Testbed(self.lab, device="memif")

    def figures(self, seconds, rate):
        yield from self.latency_figures(seconds, rate)

    def latency(self, seconds, rate=None):
        near, far = (DEVICES["memif"].format(n=n, interface="direct", folder=self.lab.dir) for n in range(2))
        far = far.replace("role=server", "role=client")
        words = ["-d", near, "-a", "10.82.0.1/16", "-t", f"{load_agent.BACKEND}:{load_agent.BACKEND_PORT}",
                 "--echo-device", far, "--echo-address", f"{load_agent.BACKEND}/16",
                 "--listen", str(load_agent.BACKEND_PORT), "--check", "same", "-p", path(self.n_routes),
                 "--probe"]
        report = report_of(self.lab.exec("lb", load_agent.argv("run", *words, *latency_words(seconds, rate),
                                                               core=cores()[1]), timeout=RUN_TIMEOUT_S, check=False))
        return Sample(report["sent"], 0.0, 0.0, report["per_second"], report["failed"],
                      latency=report["latency_ns"])
