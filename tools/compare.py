#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures shuntd beside HAProxy, nghttpx, nginx and Envoy, each with one worker, on this machine.

    tools/compare              five alternating repeats
    tools/compare --quick      three, and shorter

Whoever of the peers is installed takes part (Debian's packages haproxy, nghttp2-proxy, nginx-light; Envoy
from the tests' Python). 8x32 is eight connections with 32 requests each at a time, 64x1 is 64 with one;
answers have 64 bytes. Each shape also with 10,000 routes, the last of which is asked for; then connect,
one request, close; and latency at a fixed rate, by shunt-load for everybody. The peers, and shuntd once
more, stand between h2load and nghttpd on veth; shuntd also stands between the two ends of shunt-load on
memif, which is where its own cost can be seen: on veth the kernel's packet sockets cost more than all the
rest. Every figure says its transport. Values are medians of the repeats; a ratio is the median of those to
the best peer of the same repeat.

CPU of a peer is user and system time of its processes. CPU of shuntd on memif is its worker's CPU time
times the share of it in turns that did something (a worker that polls is on the CPU always); the
table shows beside it how far it was from saturation, and how busy its generator was. What is measured
runs with real-time priority, so that other work on the machine counts little, but for latency: leave the
machine alone meanwhile.

Needs root, two cores, and makes a release build in build-rel-eal. --json FILE writes
{"machine", "rows": [{"what", "transport", "subject", "value", "unit", "ratio_to_best_peer", "samples"}]},
--svg FILE a chart.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-rel-eal"
TARGETS = ("ctrl/shuntd", "tools/shuntctl", "tools/shunt-xds/shunt-xds", "tools/shunt-load/shunt-load")
SHAPES = {"8x32": (8, 32), "64x1": (64, 1)}  # connections, requests of each at a time
CHURN, LATENCY = "churn", "latency"
REPEATS, SECONDS = 5, 3.0
QUICK_REPEATS, QUICK_SECONDS = 3, 1.0
BAR_WIDTH, BAR_HEIGHT, LABEL_WIDTH = 420, 18, 330


def build():
    """A release build, whatever the environment says: figures of another one would mislead."""
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(BUILD), str(ROOT), "--buildtype=release"], check=True,
                       stdout=sys.stderr)
    subprocess.run(["ninja", "-C", str(BUILD), *TARGETS], check=True, stdout=sys.stderr)
    options = json.loads(subprocess.run(["meson", "introspect", str(BUILD), "--buildoptions"], check=True,
                                        capture_output=True, text=True).stdout)
    values = {o["name"]: o["value"] for o in options}
    if values["buildtype"] != "release" or values["b_sanitize"] != "none":
        sys.exit(f"{BUILD} is no release build: remove it")


def steps(running, seconds):
    """(what, how to measure it), of a subject that runs with its routes."""
    for shape, (clients, streams) in SHAPES.items():
        yield shape, lambda c=clients, s=streams: running.measure(c, s, seconds)
    if running.n_routes == 1:
        yield CHURN, lambda: running.churn(seconds)
        yield LATENCY, lambda: running.latency(seconds)


def measure(subjects, repeats, seconds, many):
    """{(subject class, routes, what): [Sample]}"""
    samples = {}
    for repeat in range(repeats):
        for subject in subjects:
            for n_routes in (1, many):
                with subject(n_routes) as running:
                    for what, step in steps(running, seconds):
                        sample = step()
                        samples.setdefault((subject, n_routes, what), []).append(sample)
                        print(f"{repeat + 1}/{repeats} {subject.name} {subject.transport}, {n_routes} routes, "
                              f"{what}: {sample.subject_us():.2f} us, {sample.per_second:.0f}/s"
                              + (f", {sample.failed} FAILED" if sample.failed else ""),
                              file=sys.stderr, flush=True)
    return samples


def row(what, subject, unit, values):
    return {"what": what, "transport": subject.transport, "subject": subject.name,
            "value": round(statistics.median(values), 4), "unit": unit,
            "samples": [round(v, 4) for v in values]}


def rows_of(samples, many, rate):
    def of(wanted, n_routes=1):
        return [(subject, s) for (subject, n, what), s in samples.items() if (n, what) == (n_routes, wanted)]

    rows = []
    for shape in SHAPES:
        rows += [row(f"CPU per request {shape}", subject, "us", [x.subject_us() for x in s])
                 for subject, s in of(shape)]
        rows += [row(f"whole-machine CPU per request {shape}", subject, "us", [x.whole_us() for x in s])
                 for subject, s in of(shape) if subject.transport == "veth"]
        rows += [row(f"requests per second {shape}", subject, "1/s", [x.per_second for x in s])
                 for subject, s in of(shape)]
        rows += [row(f"generator's busy share {shape}", subject, "%", [100 * x.busy for x in s])
                 for subject, s in of(shape) if s[0].busy is not None]
        rows += [row(f"CPU per request {shape}, {many} routes", subject, "us", [x.subject_us() for x in s])
                 for subject, s in of(shape, many)]
        rows += [row(f"CPU added by {many} routes {shape}", subject, "us",
                     [x.subject_us() - y.subject_us()
                      for x, y in zip(s, samples[subject, 1, shape])]) for subject, s in of(shape, many)]
    rows += [row("CPU per connection with one request", subject, "us", [x.subject_us() for x in s])
             for subject, s in of(CHURN)]
    for quantile in ("p50", "p99", "p99.9"):
        rows += [row(f"latency {quantile} at {rate} a second", subject, "us",
                     [x.latency[quantile] / 1e3 for x in s]) for subject, s in of(LATENCY)]
    return with_ratios(rows)


def with_ratios(rows):
    """To the best peer of the same repeat, since minutes apart the machine is another one."""
    for r in rows:
        peers = [p["samples"] for p in rows if p["what"] == r["what"] and p["subject"] != "shunt"]
        best = [(max if r["unit"] == "1/s" else min)(each) for each in zip(*peers)]
        ratios = [mine / of for mine, of in zip(r["samples"], best) if of > 0]
        r["ratio_to_best_peer"] = round(statistics.median(ratios), 3) if ratios else None
    return rows


def machine():
    model = next((line.split(":", 1)[1].strip() for line in
                  pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(),
            "load": round(os.getloadavg()[0], 1)}


def print_table(rows):
    head = ["what", "transport", "subject", "median", "unit", "least", "most", "of best peer"]
    cells = [[r["what"], r["transport"], r["subject"], f"{r['value']:,.2f}", r["unit"],
              f"{min(r['samples']):,.2f}", f"{max(r['samples']):,.2f}",
              "-" if r["ratio_to_best_peer"] is None else f"{r['ratio_to_best_peer']:.3f}"] for r in rows]
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    before = None
    for line in [head, *cells]:
        if before not in (None, line[0]):
            print()
        before = line[0]
        print("  ".join(c.rjust(w) if i in (3, 5, 6, 7) else c.ljust(w)
                        for i, (c, w) in enumerate(zip(line, widths))).rstrip())


def svg(rows):
    """A bar for each row, in groups; each group has its own scale."""
    parts, y = [], 10
    for what in dict.fromkeys(r["what"] for r in rows):
        group = [r for r in rows if r["what"] == what]
        top = max(r["value"] for r in group) or 1
        parts.append(f'<text x="10" y="{y + 14}" font-weight="bold">{what}, {group[0]["unit"]}</text>')
        y += BAR_HEIGHT + 6
        for r in group:
            width = BAR_WIDTH * r["value"] / top
            color = "#2a6fbb" if r["subject"] == "shunt" else "#b0b0b0"
            parts.append(f'<text x="{LABEL_WIDTH - 8}" y="{y + 13}" text-anchor="end">{r["subject"]} '
                         f'({r["transport"]})</text><rect x="{LABEL_WIDTH}" y="{y}" width="{width:.1f}" '
                         f'height="{BAR_HEIGHT - 4}" fill="{color}"/><text x="{LABEL_WIDTH + width + 6:.1f}" '
                         f'y="{y + 13}">{r["value"]:,.2f}</text>')
            y += BAR_HEIGHT
        y += 12
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL_WIDTH + BAR_WIDTH + 120}" height="{y}" '
            f'font-family="sans-serif" font-size="12">\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three short repeats")
    parser.add_argument("--repeats", type=int, metavar="N")
    parser.add_argument("--only", action="append", metavar="NAME", help="this subject; several")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("tools/compare makes network namespaces: run it as root")
    build()
    os.environ["SHUNT_BUILD"] = str(BUILD)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(ROOT / "tests" / "integ"), str(ROOT / "tests" / "bench")]
    import compare_subjects  # pylint: disable=import-outside-toplevel  # it reads SHUNT_BUILD
    subjects, missing = compare_subjects.found()
    if missing:
        print(f"not here, left out: {', '.join(missing)}", file=sys.stderr)
    subjects = [s for s in subjects if not args.only or s.name in args.only]
    repeats, seconds = (QUICK_REPEATS, QUICK_SECONDS) if args.quick else (REPEATS, SECONDS)
    about = {**machine(), "versions": {s.name: s.version() for s in subjects}}
    many = compare_subjects.MANY
    samples = measure(subjects, args.repeats or repeats, seconds, many)
    rows = rows_of(samples, many, compare_subjects.RATE)
    print(f"{about['cpu']}, {about['cpus']} CPUs, Linux {about['kernel']}, load {about['load']}; "
          + ", ".join(f"{name} {version}" for name, version in about["versions"].items()))
    print_table(rows)
    if args.json:
        args.json.write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")
    if args.svg:
        args.svg.write_text(svg(rows))
    if any(x.failed for s in samples.values() for x in s):
        sys.exit("some requests failed, as told above: the figures are of the rest")


if __name__ == "__main__":
    main()
