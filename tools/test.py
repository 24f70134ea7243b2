#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The one test command.

    tools/test                      everything
    tools/test PART [NAME]          one part, or one test of it
    tools/test --changed [BASE]     what can be affected by what was changed since BASE (main)
    tools/test long [NAME]          the random tests in their long forms (some ten minutes)
    tools/test pci [NAME]           network cards that QEMU emulates (needs root; half an hour)
    tools/test fleet [NAME]         hosts behind routers that speak BGP (needs root; 25 minutes)
    tools/test mesh [NAME]          istiod as the control plane, and gRPC's interop programs (needs root and Go; some
                                    minutes, a quarter of an hour more the first time)
    tools/test alerts               the alert rules, as a Prometheus sees an hour of faults in ten minutes (needs root)
    tools/test package [NAME]       the Debian package: made, installed into a bare Debian, asked, purged; with a name
                                    under systemd in a virtual machine: `service`, or one test of that (needs root)
    tools/test attacks [NAME]       every attack beside a victim for 20 s, and a table (needs root; an hour)
    tools/test attacks-asan [NAME]  all short forms, with shuntd under AddressSanitizer and UndefinedBehaviorSanitizer

Parts: lint; unit; sim (seeded simulations); sanitize (unit and sim under AddressSanitizer and
UndefinedBehaviorSanitizer, those with threads under ThreadSanitizer); clang (the whole build with clang); integ (the
running daemon between real peers, in network namespaces; needs root); attacks-short (attacks beside a victim, for a
second each; needs root). Without arguments what clang and sanitize build is built beside integ.

--changed looks at what is committed since BASE, at what is not committed yet, and at new files. Lint runs always.
Of unit, sim and sanitize run the programs that ninja would build from a changed file, and those that are given one.
clang builds if a file of the build has changed. integ and attacks-short run if a program of ours that they start is
built from a changed file; else only the test files that have changed, that import a changed one, or that start a
program of the tests which is built from one, and attacks-short if one of its files has. A file that none of this knows
may affect anything, so then everything runs. So it is, too, when a meson.build has changed.

Installs what is missing first (tools/setup). The last line is `N passed, N failed[, N skipped]`.
"""

import concurrent.futures
import os
import sys
import time

from testing import changed, integ, package, suites
from testing.report import FAILED, Counts, add, run

PARTS = {
    "lint": suites.lint,
    "unit": suites.unit,
    "sim": suites.sim,
    "clang": suites.clang,
    "integ": integ.integ,
    "sanitize": suites.sanitize,
    "attacks-short": integ.short_attacks,
}
BESIDE = {"clang": "integ"}  # the first, of which nothing is run, has what the second's own session leaves
ASKED_FOR = {"long": suites.long_forms, "pci": integ.pci, "fleet": integ.fleet,
             "mesh": integ.mesh, "alerts": integ.alerts, "package": package.package, "attacks": integ.long_attacks,
             "attacks-asan": integ.sanitized_attacks}  # not parts of everything


def parse(argv):
    """[(part's name, what to call)], or None if that is no command line of ours."""
    if not argv:
        parts = {**PARTS, "clang": suites.other_builds}
        return [(name, lambda part=part: part([])) for name, part in parts.items()]
    if len(argv) > 2:
        return None
    if argv[0] == "--changed":
        return [("changed", lambda: changed.affected_parts(PARTS, *argv[1:]))]
    known = {**PARTS, **ASKED_FOR}
    if argv[0] not in known:
        return None
    return [(argv[0], lambda: known[argv[0]](argv[1:]))]


def timed(name, part):
    start = time.monotonic()
    counts = part()
    print(f"{name}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped "
          f"in {time.monotonic() - start:.0f} s", flush=True)
    return counts


def run_parts(chosen):
    """The counts of each: one after the other, but for those BESIDE the next."""
    def idly():  # what this thread starts inherits it
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with concurrent.futures.ThreadPoolExecutor(1, initializer=idly) as pool:
        beside = []
        for (name, part), (following, _) in zip(chosen, [*chosen[1:], (None, None)]):
            if following and BESIDE.get(name) == following:
                beside.append(pool.submit(timed, name, part))
                continue
            yield timed(name, part)
            yield from (each.result() for each in beside)
            beside = []


def main(argv):
    if argv[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    chosen = parse(argv)
    if chosen is None:
        print(__doc__.strip())
        return 2
    if not run(["tools/setup"]):
        print("0 passed, 1 failed")
        return 1
    total = add(Counts(), *run_parts(chosen))
    for name in FAILED:
        print(f"failed: {name}")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"\n{total.passed} passed, {total.failed} failed{skipped}", flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
