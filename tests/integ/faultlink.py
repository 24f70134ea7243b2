# SPDX-License-Identifier: Apache-2.0
"""A wire with faults between the two interfaces of a namespace (tests/support/faultlink), `far` and `near` as in a
Testbed: what goes from far to near goes forth."""

import json

from lab import LabError, wait_until
from testbed import BUILD

PROGRAM = BUILD / "tests" / "support" / "faultlink" / "faultlink"
START_TIMEOUT_S = 45


class Faultlink:
    """It relays while in a `with`, for which time 0 is its begin; counters are there afterwards. faults: words such as
    "loss=1% delay=10ms", for both directions or for one."""

    def __init__(self, lab, ns, both="", forth="", back="", seed=1):
        self.lab = lab
        self.ns = ns
        self.argv = [PROGRAM, "far", "near", "--seed", seed, "--both", both, "--forth", forth, "--back", back]
        self.process = None
        self.counters = None  # {"forth": {"lost": …}, "back": …}

    def __enter__(self):
        self.process = self.lab.start(self.ns, f"faultlink-{len(self.lab.processes)}", self.argv)
        wait_until(lambda: not self.process.alive() or self.process.output(), START_TIMEOUT_S, "a faultlink")
        if not self.process.alive():
            raise LabError(self.process.output())
        return self

    def __exit__(self, *_):
        self.process.stop()
        self.counters = json.loads(self.process.output().splitlines()[-1])

    def total(self, counter):
        """Of both directions."""
        return sum(way[counter] for way in self.counters.values())
