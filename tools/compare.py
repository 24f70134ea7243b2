#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures shuntd beside HAProxy, nghttpx, nginx and Envoy, each with one worker, on this machine.

    tools/compare              five alternating repeats, or as many as half an hour has room for
    tools/compare --quick      two shorter ones, or what five minutes have room for
    tools/compare --ways       only what TLS and HTTP/1.1 cost (also with --quick)

Whoever of the peers is installed takes part; `tools/setup compare` installs them all (Debian's packages
haproxy, nghttp2-proxy, nginx; Envoy for the tests' Python). 8x32 is eight connections with 32 requests each at
a time, 64x1 is 64 with one; answers have 64 bytes. Each shape also with 10,000 routes, the last of which is
asked for (what they add is less than two processes differ by: on memif one has both, and they take turns); then
connections that have had one request and wait; connect, one request, close; and latency, by shunt-load for
everybody, at half of what the slowest peer can do with 64x1, counted from when each request was due: a stall
delays all that follow. The peers, and shuntd once more, stand between h2load and nghttpd on veth; shuntd also
stands between the two ends of shunt-load on memif, which is where its own cost can be seen: on veth the
kernel's packet sockets cost more than all the rest. `direct` has nobody in between. Bodies of 1 MiB, in answers
and in requests, one at a time (1x1) and 64 (8x8), shuntd also with an MTU of 9000. On veth also an nginx as a
backend that closes each connection after so many requests, after 0.4 s, or when it was idle for 0.4 s (8x8, or
two requests a second). Then the same requests in clear text, with TLS 1.3 at the front, on both sides, and in
HTTP/1.1 with keep-alive (64x1), with one ECDSA certificate and AES-128-GCM for everybody and no session
resumed: what each adds is above clear text of the same repeat, or, of requests and of a worker's part of a new
connection on memif, where one shuntd has all ways and they take turns, of the same turn; with TLS also new
connections, of all threads, and idle ones. The worker's part is that of some 1000 a second, with TLS of as many
as one thread shakes hands for, in clear text of as many as that were.
Last, 10,000 clusters by ADS, for shuntd and Envoy. Every figure says its transport. Values are medians of the
repeats; a ratio is the median of those to the best peer of the same repeat, of what is added (a difference)
that of the medians.

CPU of a peer is user and system time of its processes. CPU of shuntd on memif is its worker's CPU time
times the share of it in turns that did something (a worker that polls is on the CPU always). Whether that
is true shows at saturation: as many requests a second are possible as the busy share says at half of them,
or more, since larger batches cost less. With TLS and in HTTP/1.1, and in clear text beside these, it is the
time of such turns between looks at the worker, every 50 ms while connections neither come nor go: what a
connection costs, and time in which the worker was off its core, is in none of them. A figure is `-` (in
JSON null) where fewer were counted than tell anything: 10,000 requests, 200 new connections.
What is measured runs with real-time priority, so that other work on the machine counts little, but for
latency: leave the machine alone meanwhile.

Needs root, two cores, and makes a release build in build-rel-eal. --json FILE writes
{"machine", "rows": [{"what", "transport", "subject", "value", "unit", "ratio_to_best_peer", "samples"}]},
--svg FILE a chart.
"""

import argparse
import collections
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-rel-eal"
TARGETS = ("ctrl/shuntd", "tools/shuntctl", "tools/shunt-xds/shunt-xds", "tools/shunt-load/shunt-load")
# limit_s: no repeat begins that would end later, on a machine that is slow or at work.
# few_repeats: of what takes long.
Plan = collections.namedtuple("Plan", "repeats seconds few_repeats limit_s")
FULL, QUICK = Plan(5, 3.0, 3, 1500), Plan(2, 0.5, 1, 220)


def build(targets):
    """A release build, whatever the environment says: figures of another one would mislead."""
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(BUILD), str(ROOT), "--buildtype=release"], check=True,
                       stdout=sys.stderr)
    options = json.loads(subprocess.run(["meson", "introspect", str(BUILD), "--buildoptions"], check=True,
                                        capture_output=True, text=True).stdout)
    values = {o["name"]: o["value"] for o in options}
    if values["buildtype"] != "release" or values["b_sanitize"] != "none" or values["b_ndebug"] == "false":
        sys.exit(f"{BUILD} is not a release build: remove it")
    subprocess.run(["ninja", "-C", str(BUILD), *targets], check=True, stdout=sys.stderr)


def tell(text):
    print(text, file=sys.stderr, flush=True)


def rate_of(subjects, seconds):
    """Half of what the slowest peer can do, of shuntd where there is none."""
    rates = []
    for subject in [s for s in subjects if s.is_peer] or subjects:
        with subject() as running:
            rates.append(running.latency(seconds).per_second)
            tell(f"{subject.name}: {rates[-1]:.0f}/s, 64 at a time by shunt-load")
    return max(100, int(min(rates) / 2) // 100 * 100)


def measure(figures, subjects, plan, rate, many):
    """How many requests failed."""
    import compare_print  # pylint: disable=import-outside-toplevel
    n_failed, started = 0, time.monotonic()
    for repeat in range(plan.repeats):
        if repeat and (time.monotonic() - started) * (repeat + 1) / repeat > plan.limit_s:
            tell(f"no time for more than {repeat} of {plan.repeats} repeats")
            break
        for subject in subjects:
            for n_routes in (1, many) if subject.routes else (1,):
                with subject(n_routes) as running:
                    for what, unit, value in running.figures(plan.seconds, rate):
                        figures.add(repeat, subject, what, unit, value)
                        tell(f"{repeat + 1}/{plan.repeats} {subject.name} {subject.transport}: "
                             f"{what}: {compare_print.figure(value)} {unit}")
                    n_failed += running.failed
                    if running.failed:
                        tell(f"{subject.name} {subject.transport}, {n_routes} routes: {running.failed} FAILED")
    return n_failed


def closing(figures, subjects, plan):
    """How many requests of shuntd's failed before backends that end their connections."""
    import compare_closing  # pylint: disable=import-outside-toplevel
    n_failed = 0
    if not compare_closing.is_here():
        tell("no nginx: backends that close are left out; to get it: tools/setup compare")
        return n_failed
    for repeat in range(plan.few_repeats):
        for subject, what, unit, value, failed in compare_closing.figures(subjects, plan.seconds):
            figures.add(repeat, subject, what, unit, value)
            tell(f"{subject.name}: {what}: {value:.2f} {unit}")
            n_failed += failed
    return n_failed


def ways(figures, subjects, plan):
    """Of clear text, TLS and HTTP/1.1. How many requests failed."""
    import compare_bed  # pylint: disable=import-outside-toplevel
    import compare_print  # pylint: disable=import-outside-toplevel
    import compare_ways  # pylint: disable=import-outside-toplevel
    n_failed = 0
    for repeat in range(plan.few_repeats):
        for subject in subjects:
            for one in subject.of_ways():
                with one as running:
                    for what, unit, value in running.way_figures(plan.seconds):
                        figures.add(repeat, subject, what, unit, value)
                        tell(f"{repeat + 1}/{plan.few_repeats} {subject.name} {subject.transport}: {what}: "
                             f"{compare_print.figure(value)} {unit}")
                    n_failed += running.failed
    whats = [*map(compare_bed.cpu_per_request, compare_bed.SHAPES), compare_bed.CHURN_FIGURE, *compare_bed.IDLE_FIGURES]
    for way in compare_ways.WAYS[1:]:
        for what in whats:
            figures.add_differences(compare_ways.added(what, way), compare_ways.named(what, way),
                                    compare_ways.named(what, compare_ways.CLEAR))
    return n_failed


def machine():
    model = next((line.split(":", 1)[1].strip() for line in
                  pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(),
            "load": round(os.getloadavg()[0], 1)}


def stolen_s():
    """Seconds, of all processors, that the machine's host gave to others."""
    first = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(first[8]) / os.sysconf("SC_CLK_TCK")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two short repeats")
    parser.add_argument("--repeats", type=int, metavar="N")
    parser.add_argument("--ways", action="store_true", help="only what TLS and HTTP/1.1 cost")
    parser.add_argument("--only", action="append", metavar="NAME", help="this subject; several")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    args.plan = QUICK if args.quick else FULL
    if args.repeats:
        args.plan = args.plan._replace(repeats=args.repeats, limit_s=float("inf"),
                                       few_repeats=min(args.repeats, args.plan.few_repeats))
    return args


def measure_all(plan, figures, subjects):
    """In clear text. How many requests failed."""
    import compare_bed  # pylint: disable=import-outside-toplevel
    import compare_subjects  # pylint: disable=import-outside-toplevel
    many, rate = compare_bed.MANY, rate_of(subjects, plan.seconds)
    n_failed = measure(figures, subjects, plan, rate, many)
    n_failed += closing(figures, [s for s in subjects if s.transport == "veth" and s.routes], plan)
    for shape in compare_bed.SHAPES:
        figures.add_differences(compare_bed.cpu_added(shape, many), compare_bed.cpu_per_request(shape, many),
                                compare_bed.cpu_per_request(shape))
    for quantile in compare_bed.QUANTILES:
        figures.add_beyond(f"latency {quantile} added at {rate} a second", f"latency {quantile} at {rate} a second",
                           compare_subjects.REFERENCE)
    return n_failed


def clusters(plan, figures, subjects):
    import compare_clusters  # pylint: disable=import-outside-toplevel
    for repeat in range(plan.few_repeats):
        for taker, what, unit, value in compare_clusters.figures(BUILD, [s.name for s in subjects]):
            figures.add(repeat, taker, what, unit, value)


def main():
    args = arguments()
    if os.geteuid() != 0:
        sys.exit("tools/compare makes network namespaces: run it as root")
    build(TARGETS)
    started, stolen = time.monotonic(), stolen_s()
    os.environ["SHUNT_BUILD"] = str(BUILD)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(ROOT / "tests" / "integ"), str(ROOT / "tests" / "bench")]
    # pylint: disable=import-outside-toplevel  # they read SHUNT_BUILD
    import compare_print
    import compare_rows
    import compare_subjects
    subjects, missing = compare_subjects.found()
    if missing:
        tell(f"not here, left out: {', '.join(missing)}; to get them: tools/setup compare")
    subjects = [s for s in subjects if not args.only or s.name in (*args.only, compare_subjects.REFERENCE)]
    about = {**machine(), "versions": {s.name: s.version() for s in subjects}}
    figures = compare_rows.Figures()
    in_ways = [s for s in subjects if s.routes and s.transport in ("memif", "veth")]
    n_failed = 0 if args.ways else measure_all(args.plan, figures, subjects)
    n_failed += ways(figures, in_ways, args.plan)
    if not args.ways:
        clusters(args.plan, figures, subjects)
    rows = figures.rows()
    elapsed = time.monotonic() - started
    about["stolen_percent"] = round(100 * (stolen_s() - stolen) / (elapsed * about["cpus"]), 1)
    print(f"{about['cpu']}, {about['cpus']} CPUs, Linux {about['kernel']}, load {about['load']}, "
          f"{about['stolen_percent']} % of them taken by the machine's host; "
          + ", ".join(f"{name} {version}" for name, version in about["versions"].items())
          + f"; {elapsed:.0f} s")
    print("\n".join(compare_print.table(rows)))
    if args.json:
        args.json.write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")
    if args.svg:
        args.svg.write_text(compare_print.svg(rows))
    if n_failed:
        sys.exit(f"{n_failed} requests failed (see each run): the figures are of the rest")


if __name__ == "__main__":
    main()
