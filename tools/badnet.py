#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures shuntd in bad networks, beside HAProxy on this machine's kernel with CUBIC.

    tools/badnet                          every cell with three seeds (half a night)
    tools/badnet --seeds 1 --only 'RTT 20 ms, client down'      some of them, once
    tools/badnet --family both            each over IPv4 and over IPv6
    tools/badnet --calls                  how long 10,000 small calls take where packets are lost
    tools/badnet --chance                 HAProxy beside itself: how far ratios scatter by chance
    tools/badnet --table FILE …           the ratios in what --json wrote, a condition a row

A cell is a condition (loss, bursts, reordering, a short queue, a small path MTU, a blackout, …), the side of the
balancer that has it, the way that bodies go, and over how many connections (tests/integ/badnet_table.py). For each cell
and seed both start anew between the same client and backend, whose TCP is the kernel's, too, and what becomes of the
n-th packet is the same for both. Bodies are hashed where they arrive.

The calls are requests of 200 bytes (`up`), or with answers of as many (`down`), on ten connections at once, one after
the other on each: HTTP/2, by the same client in Python, whose own half millisecond is part of each latency. Their ratio
is that of the 99th percentiles, so that less is better. Where packets of the client are lost, too, that one hangs by
its kernel, which repeats one request of a hundred after 200 ms and more: hence the cells in which all is lost `from
us`.

A goodput is that of the bodies that arrived whole, until the last one did; a ratio is the median over the seeds. Ends
with 1 if a transfer through shuntd failed where HAProxy's did not, or if one was altered.

The worker polls, as one does that has its core, and so does HAProxy, on the same core: else the others would have two
cores beside it, and one beside shuntd. With `--idle backoff` several of these can run side by side, and a
round trip of 0.2 ms becomes one of 0.3. `chrt -r 20 tools/badnet …` keeps what else the machine does out of the
figures.

Needs root and haproxy (`tools/setup compare`), and makes a release build in build-rel-eal, unless SHUNT_BUILD names
another build, which is taken as it is. --json FILE writes {"machine", "cells": [{"cell", "condition", "side", "way",
"connections", "family", "ratio", "shunt": [{"goodput", "failed", "altered", "counters", "p50_ms", "p99_ms"} for each
seed], "haproxy": […]}]}; with --chance "again" in place of "shunt".
"""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import sys

from compare import BUILD, ROOT, TARGETS, build, machine, tell

FAULTLINK = "tests/support/faultlink/faultlink"
SHUNT, HAPROXY, AGAIN = "shunt", "haproxy", "again"


def ratio_of(ours, theirs):
    """None where HAProxy got nothing through."""
    ratios = [a.goodput / b.goodput for a, b in zip(ours, theirs) if b.goodput]
    return statistics.median(ratios) if ratios else None


def p99_ratio_of(ours, theirs):
    """None where no call of HAProxy's was answered."""
    ratios = [a.p99_ms / b.p99_ms for a, b in zip(ours, theirs) if b.p99_ms]
    return statistics.median(ratios) if ratios else None


def wrongs_of(results):
    return ", ".join(f"{name}: {what} {n}" for name, of in results.items()
                     for what, n in (("failed", sum(len(r.failed) for r in of)),
                                     ("ALTERED", sum(r.altered for r in of))) if n)


def both_of(results):
    """(who is measured, whom beside): with an empty list where nobody is beside."""
    ours, *others = results.values()
    return ours, others[0] if others else []


def calls_line_of(cell, results):
    ours, theirs = both_of(results)
    ratio = p99_ratio_of(ours, theirs)
    times = "".join(f"{statistics.median(getattr(r, which) for r in of):9.1f}" if of else f"{'-':>9}"
                    for of in (ours, theirs) for which in ("p50_ms", "p99_ms"))
    return f"{str(cell):64}{times}{f'{ratio:8.2f}' if ratio is not None else '       -'}  {wrongs_of(results)}"


def line_of(cell, results):
    ours, theirs = both_of(results)
    ratio = ratio_of(ours, theirs)
    goodputs = "".join(f"{statistics.median(r.goodput for r in of):10.2f}" if of else f"{'-':>10}"
                       for of in (ours, theirs))
    return f"{str(cell):56}{goodputs}{f'{ratio:8.2f}' if ratio is not None else '       -'}  {wrongs_of(results)}"


def is_bad(results):
    """shuntd altered something, or failed where HAProxy did not."""
    ours, theirs = results.get(SHUNT, []), results.get(HAPROXY, [])
    spared = theirs and any(r.failed for r in theirs)
    return any(r.altered for r in ours) or any(r.failed for r in ours) and not spared


def run(cell, subjects, seeds, idle):
    """{what it is called: [a result for each seed]}; subjects: {the same: subject}."""
    from badnet_world import Bed  # pylint: disable=import-outside-toplevel
    from lab import Lab  # pylint: disable=import-outside-toplevel
    results = {name: [] for name in subjects}
    for seed in seeds:
        for name, subject in subjects.items():
            with Lab("shunt-badnet") as lab:
                results[name].append(Bed(lab, subject, cell.family, cell, idle).run(cell, seed))
    return results


def as_json(cell, results):
    ratio = (p99_ratio_of if cell.condition.requests > 1 else ratio_of)(*both_of(results))
    return {"cell": str(cell), "condition": dataclasses.asdict(cell.condition), "side": cell.side, "way": cell.way,
            "connections": cell.connections, "family": cell.family, "ratio": ratio,
            **{name: [dataclasses.asdict(r) for r in of] for name, of in results.items()}}


def table_of(cells):
    """Markdown: for each family and condition the ratios of its cells; - where HAProxy got nothing through."""
    columns = list(dict.fromkeys(f"{c['side']} {c['way']} x{c['connections']}" for c in cells))
    rows = {}
    for c in cells:
        name = c["condition"]["name"] + ", IPv6" * (c["family"] == 6)
        rows.setdefault(name, {})[f"{c['side']} {c['way']} x{c['connections']}"] = c["ratio"]
    lines = [["", *columns], ["---"] * (1 + len(columns))]
    lines += [[name, *("-" if row.get(c) is None else f"{row[c]:.2f}" for c in columns)] for name, row in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="how many, from 1 on")
    parser.add_argument("--only", action="append", metavar="TEXT", help="cells with this in their name; several")
    parser.add_argument("--calls", action="store_true", help="latencies of calls instead of goodputs")
    parser.add_argument("--family", choices=["4", "6", "both"], default="4", help="IPv4 or IPv6, on both sides")
    beside = parser.add_mutually_exclusive_group()
    beside.add_argument("--alone", action="store_true", help="without HAProxy")
    beside.add_argument("--chance", action="store_true", help="HAProxy in shuntd's place, too")
    parser.add_argument("--idle", choices=["poll", "backoff"], default="poll", help="of shuntd's worker")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--table", type=pathlib.Path, nargs="+", metavar="FILE", help="measure nothing")
    return parser.parse_args()


def main():
    args = arguments()
    if args.table:
        print(table_of([cell for file in args.table for cell in json.loads(file.read_text())["cells"]]))
        return 0
    if os.geteuid() != 0:
        sys.exit("tools/badnet makes network namespaces: run it as root")
    if not args.alone and not shutil.which("haproxy"):
        sys.exit("no haproxy: tools/setup compare gets it, --alone does without")
    if "SHUNT_BUILD" not in os.environ:
        build([*TARGETS, FAULTLINK])
        os.environ["SHUNT_BUILD"] = str(BUILD)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT / "tests" / "integ"))
    from badnet_table import CALLS, CELLS  # pylint: disable=import-outside-toplevel
    families = [4, 6] if args.family == "both" else [int(args.family)]
    cells = [dataclasses.replace(c, family=family) for family in families for c in (CALLS if args.calls else CELLS)]
    cells = [c for c in cells if not args.only or any(text in str(c) for text in args.only)]
    ours = AGAIN if args.chance else SHUNT
    subjects = {ours: HAPROXY if args.chance else SHUNT, **({} if args.alone else {HAPROXY: HAPROXY})}
    about, told, n_bad = machine(), [], 0
    print(f"{about['cpu']}, {about['cpus']} CPUs, Linux {about['kernel']} with CUBIC, load {about['load']}, "
          f"seeds {args.seeds}")
    if args.calls:
        print(f"{'ms':64}{ours + ' p50':>9}{'p99':>9}{HAPROXY:>9}{'p99':>9}{'ratio':>8}", flush=True)
    else:
        print(f"{'Mbit/s':56}{ours:>10}{HAPROXY:>10}{'ratio':>8}", flush=True)
    for cell in cells:
        results = run(cell, subjects, range(1, args.seeds + 1), args.idle)
        print((calls_line_of if args.calls else line_of)(cell, results), flush=True)
        told.append(as_json(cell, results))
        n_bad += is_bad(results)
        if args.json:
            args.json.write_text(json.dumps({"machine": about, "cells": told}, indent=1) + "\n")
    if n_bad:
        tell(f"in {n_bad} of {len(cells)} cells shuntd altered a body, or failed where HAProxy did not")
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
