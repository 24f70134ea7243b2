# SPDX-License-Identifier: Apache-2.0
"""A Testbed whose shuntd is the client of two memifs; their server is a virtual switch.

    client 10.81.0.1 -- lb-c (memif_switch) == memif == 10.81.0.10 (shuntd), and likewise to the backends
"""

import json

from lab import wait_until
from testbed import BUILD, LINKS

PROGRAM = BUILD / "tests" / "support" / "memif_switch" / "memif_switch"
WAIT_S = 30


class Switch:
    """Runs from start() to stop(), as often as one likes; it has a queue for each of the Testbed's workers."""

    def __init__(self, bed):
        self.bed = bed
        self.n_started = 0
        self.process = None
        self.start()

    def start(self):
        self.n_started += 1
        ways = [f"{self.bed.lab.dir}/{near_if}.sock={near_if}" for _, near_if in LINKS.values()]
        self.process = self.bed.lab.start("lb", f"switch-{self.n_started}", [
            PROGRAM, str(len(self.bed.workers)), *ways])
        wait_until(lambda: "ready" in self.process.output(), WAIT_S, "the switch")

    def stop(self):
        """What it did, by link."""
        assert self.process.alive(), self.process.output()
        assert self.process.stop(WAIT_S) == 0
        return dict(zip(LINKS, json.loads(self.process.output().splitlines()[-1])))
