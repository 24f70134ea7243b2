#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Benches of the product beside its rivals, on this machine.

    tools/bench route [--json] [ROUTES ...]
    tools/bench pick [--json] [ENDPOINTS ...]
    tools/bench update [--json] [ENDPOINTS ...]
    tools/bench hpack | h2 | proxy | tcp | tls [--json] [--instructions]
    tools/bench workers [--json]
    tools/bench clusters [--json] [CLUSTERS]
    tools/bench updates [--json]
    tools/bench floods [--json] [--seconds S] [--repeats N] [--only FLOOD]

route: how long a route is looked for, in tables of so many routes (10, 1000, 10000, 100000), by
shunt, a linear scan, RE2::Set and Hyperscan, all on the same table and requests (route_find); and how
long a changed route configuration takes from its bytes to a published snapshot (route_publish). Times
are of the processor, medians of alternating repeats.

pick: how long it takes to pick an endpoint for a request with a session cookie that binds to nobody
(miss) or to one of the cluster's (hit), among so many (100, 100000), beside a draw from an alias table.

update: what changes of a cluster cost: from the bytes of its endpoints to a published picker
(eds_to_picker; 10000, 100000), beside libprotobuf, which only parses them; one endpoint's state
(one_endpoint); and what endpoints and clusters take (memory).

hpack: a gRPC request's header block of ten fields, decoded and encoded, beside nghttp2's coder.
h2: a unary gRPC request through both roles of HTTP/2, beside nghttp2's sessions. proxy: the same from a
client's bytes to a backend and back, through all of the proxy but packets, also on connections of one request
each (once), and what it takes to be observed: by logs, traces and metrics (times), and with its frames, between memifs,
by virtual host (vhosts) and by a packet capture (captured). tcp: a segment out of one stack and into another, a
connection opened, used and closed by both (once), and a frame through Ethernet, IPv4 and TCP between memifs, beside the
same by IPv6 (ip6) and a loop that only receives and sends (and dpdk-testpmd, where Debian's dpdk-dev is installed).
tls: records of 200 bytes and of 16 KiB, sealed, and sealed and opened, beside OpenSSL's SSL_write and SSL_read and its
bare cipher; a worker's part of a new connection with one request, beside one in plain text; and full handshakes on one
and two threads of their own, beside OpenSSL alone in as many, and such as end with a ticket, full or resumed, with
real-time priority, where that is allowed. With --instructions each row also tells callgrind's count of instructions an
operation, which repeats from run to run where times do not.

workers: what two workers do on two cores beside one alone, each a whole proxy fed by its own thread (as in
proxy): two that share a snapshot and its breaker, and two that share nothing, which is what the machine has for
two threads. With real-time priority, where that is allowed, for some fifteen seconds.

clusters: what it costs the running shuntd to take so many clusters (10000) of ten endpoints each and a
route for each from an ADS server: CPU of the control thread until they serve, and memory; beside Envoy,
from its static configuration and from the same server, where the tests' Python has it (tools/setup).

updates: 1000 EDS responses a second for a minute, each of which replaces one of 2000 connected endpoints
of 1000 clusters, beside a minute without: CPU of the control thread, snapshots, and the worker's turns
above 1 ms. Needs root, for network namespaces.

floods: how long requests on established TLS connections wait at half of the daemon's highest rate, open loop, without a
flood and with each: of handshakes, hellos, halves of them, slow ones, records of one byte, KeyUpdates, empty records.
`elsewhere` is the same attack on another server of this machine, so that it tells what is not the daemon's. Six
minutes; needs root (docs/attacks.md).

Makes a release build in build-rel, of shuntd in build-rel-eal. With --json one object a line goes to the
standard output, else a table with ratios. What is left out is said on the standard error.
"""

import argparse
import atexit
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-rel"
BUILD_EAL = ROOT / "build-rel-eal"
PYTHON = ROOT / ".venv" / "bin" / "python"
RIVALS = ("linear", "re2_set", "hyperscan")
DEFAULT_SIZES = (10, 1000, 10000, 100000)


def make(folder, options, targets):
    if not (folder / "build.ninja").exists():
        setup = ["meson", "setup", str(folder), str(ROOT), "--buildtype=release", *options]
        subprocess.run(setup, check=True, stdout=sys.stderr)
    subprocess.run(["ninja", "-C", str(folder), *targets], check=True, stdout=sys.stderr)


def build(*targets):
    make(BUILD, ["-Deal=false"], [f"tests/bench/{t}" for t in targets])


def run(program, *args, each=lambda row: None):
    """The objects that the program prints, each also given to `each` when it comes."""
    return run_command([str(BUILD / "tests/bench" / program), *args], each)


def run_command(command, each):
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            rows.append(json.loads(line))
            each(rows[-1])
    if p.returncode:
        sys.exit(f"{' '.join(command)} failed with {p.returncode}")
    return rows


def number(x):
    return "-" if x is None else f"{x:,.0f}" if abs(x) >= 100 else f"{x:,.1f}" if abs(x) >= 1 else f"{x:.2g}"


def table(head, rows):
    cells = [head, *rows]
    widths = [max(len(r[i]) for r in cells) for i in range(len(head))]
    for r in cells:
        print("  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths))))
    print()


def find_table(rows):
    by = {(r["case"], r["n"], r["impl"]): r for r in rows}
    out = []
    for (case, n, impl), r in by.items():
        ours = by[case, n, "shunt"]["ns_op"]
        out.append([case, str(n), impl, number(r["ns_op"]), f"{r['ns_op'] / ours:,.1f}",
                    number(r["build_ms"]), number(r["bytes_per_route"])])
    table(["case", "routes", "by", "ns a lookup", "times ours", "ms to build", "bytes a route"], out)
    return by


def publish_table(rows):
    out = [[r["case"], number(r["ms"]), number(r["decode_ms"]), number(r["compile_ms"])] for r in rows]
    table([f"{rows[0]['n']} routes, {rows[0]['regexes']} regexes", "ms", "of it decoding", "compiling"], out)


def targets(by, published):
    """(what, value, limit, at least?) of what is there."""

    def ns(case, n, impl):
        return by.get((case, n, impl), {}).get("ns_op")

    for case in ("prefix", "regex10"):
        for rival, limit in zip(RIVALS, (500, 8, 8)):
            ours, theirs = ns(case, 10000, "shunt"), ns(case, 10000, rival)
            if ours and theirs:
                yield f"{rival} / shunt, {case}, 10000 routes", theirs / ours, limit, True
    small, large = ns("prefix", 10, "shunt"), ns("prefix", 100000, "shunt")
    if small and large:
        yield "100000 / 10 routes, prefix", large / small, 8, False
    r = by.get(("prefix", 100000, "shunt"))
    if r:
        yield "ms to build 100000 prefixes", r["build_ms"], 120, False
        yield "bytes a literal route beyond its text", r["bytes_per_route"], 64, False
    for p in published:
        if p["case"] == "add":
            yield "ms to add a route and publish", p["ms"], 50, False


def target_table(targets):
    """Of (what, value, limit, at least?)."""
    rows = [[what, number(value), f"{'>=' if at_least else '<='} {limit}",
             "met" if (value >= limit if at_least else value <= limit) else "MISSED"]
            for what, value, limit, at_least in targets]
    table(["target", "here", "wanted", ""], rows)


def shower(args):
    if args.json:
        return lambda row: print(json.dumps(row, separators=(",", ":")), flush=True)
    return lambda row: None


def route(args):
    build("bench_route", "bench_publish")
    found = run("bench_route", *map(str, args.sizes or DEFAULT_SIZES), each=shower(args))
    published = run("bench_publish", each=shower(args))
    if args.json:
        return
    by = find_table(found)
    publish_table(published)
    target_table(targets(by, published))


def pick(args):
    build("bench_pick")
    rows = run("bench_pick", *map(str, args.sizes), each=shower(args))
    if args.json:
        return
    by = {(r["case"], r["n"], r["impl"]): r["ns_op"] for r in rows}
    out = [[case, str(n), number(ns), number(by[case, n, "alias"]), f"{ns / by[case, n, 'alias']:.1f}"]
           for (case, n, impl), ns in by.items() if impl == "shunt"]
    table(["cookie", "endpoints", "ns a pick", "ns by alias table", "times"], out)
    wanted = [(f"shunt / alias, miss, {n} endpoints", by["miss", n, "shunt"] / by["miss", n, "alias"], 2, False)
              for n in sorted({n for _, n, _ in by})]
    if ("miss", 100, "shunt") in by and ("miss", 100000, "shunt") in by:
        times = by["miss", 100000, "shunt"] / by["miss", 100, "shunt"]
        wanted.append(("100000 / 100 endpoints, miss", times, 4, False))
    target_table(wanted)


def update(args):
    build("bench_update")
    rows = run("bench_update", *map(str, args.sizes), each=shower(args))
    if args.json:
        return
    by = {(r["case"], r["n"], r["impl"]): r for r in rows if r["bench"] == "eds_to_picker"}
    out, wanted = [], []
    for (case, n, impl), r in by.items():
        theirs = by[case, n, "libprotobuf_parse"]["ns_op"]
        out.append([case, str(n), impl, number(r["ns_op"]), number(r.get("decode_ns")), f"{r['ns_op'] / theirs:.2f}"])
        if impl == "shunt":
            wanted.append((f"shunt / libprotobuf, {case}, {n} endpoints", r["ns_op"] / theirs, 1, False))
    table(["update", "endpoints", "by", "ns each", "of it decoding", "times theirs"], out)
    for r in rows:
        if r["bench"] == "one_endpoint":
            wanted.append((f"us until one of {r['n']} is published", r["us"], 200, False))
            wanted.append(("bytes of new memory for it", r["bytes"], 65536, False))
        if r["bench"] == "memory":
            wanted.append((f"bytes an endpoint, {r['n']} of them", r["bytes_per_endpoint"], 256, False))
            if "bytes_per_cluster" in r:
                wanted.append(("bytes a cluster", r["bytes_per_cluster"], 4096, False))
    target_table(wanted)


def instructions(program, i, n_ops):
    """Of one operation of the program's way i; callgrind watches bench_counted() of tests/bench/ways.c alone."""
    with tempfile.NamedTemporaryFile(prefix="callgrind.") as out:
        command = ["valgrind", "--tool=callgrind", "--toggle-collect=bench_counted*",
                   f"--callgrind-out-file={out.name}", str(program), "count", str(i), str(n_ops)]
        done = subprocess.run(command, capture_output=True, text=True)
        total = re.search(r"^(?:summary|totals): (\d+)", pathlib.Path(out.name).read_text(), re.MULTILINE)
    if done.returncode or not total:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return round(int(total.group(1)) / n_ops, 1)


WAYS = ("hpack", "h2", "proxy", "tcp", "tls")
COUNTED_OPS = 4096
IP6_WANTED = 1.1  # of what a frame by IPv4 takes
TESTPMD_S = 3
TESTPMD_THREAD = "rte-worker-1"
# Of what two threads gain over one, beside OpenSSL's; us of a worker for a new connection with TLS.
GAIN_WANTED = 0.95
WORKER_US_WANTED = 10
# Of being observed: % of a request's instructions, and us of a worker that tells of each in a log.
OBSERVED_WANTED = {"times": 1, "vhosts": 1, "log": 2, "capture": 2}
LOG_US_WANTED = 0.4
# What is wanted of a rival's ns / ours; of OpenSSL's records, 1 / 0.15 and 1 / 0.4.
WAYS_WANTED = {("hpack", case): 3 for case in ("decode_stable", "decode_new2", "decode_literal",
                                               "encode_stable", "encode_new2", "encode_literal")}
WAYS_WANTED |= {("tls", case): 6.67 for case in ("write_200", "both_200")}
WAYS_WANTED |= {("tls", case): 2.5 for case in ("write_16k", "both_16k")}


def counted(program, args, show):
    """The rows of bench_ways(), with instructions if they are asked for."""
    rows = run_command([str(program)], lambda row: None if args.instructions else show(row))
    if args.instructions:
        for i, row in enumerate(rows):
            row["instructions"] = instructions(program, i, COUNTED_OPS)
            show(row)
    return rows


def ways(args):
    if args.instructions and not shutil.which("valgrind"):
        sys.exit("--instructions needs valgrind (Debian package valgrind)")
    build(f"bench_{args.bench}")
    rows = counted(BUILD / f"tests/bench/bench_{args.bench}", args, shower(args))
    ways_table(args, rows)
    if args.bench == "tcp":
        packets(args)
    if args.bench == "proxy":
        observed(args, {r["case"]: r for r in rows})
    if args.bench == "tls":
        handshakes(args, {r["impl"]: r for r in rows if r["case"] == "connection"})


def added_percent(by, more, than):
    """Instructions of one row above those of another, in hundredths of these."""
    return (by[more]["instructions"] / by[than]["instructions"] - 1) * 100


def observed(args, by):
    """What it costs a request to be observed: by the rows of bench_proxy, and by whole requests with their frames."""
    make(BUILD_EAL, [], ["tests/bench/bench_request"])
    rows = counted(BUILD_EAL / "tests/bench/bench_request", args, shower(args))
    build("bench_log")
    written = run("bench_log", each=shower(args))[0]
    if args.json:
        return
    ways_table(args, rows)
    print(f"a line of a log in JSON takes its thread {number(written['ns_op'])} ns\n")
    added_us = (by["64x1-all"]["ns_op"] - by["64x1"]["ns_op"]) / 1e3
    wanted = [("us of a worker that a log of all adds, 64x1", added_us, LOG_US_WANTED, False)]
    if args.instructions:
        whole = {(r["case"], r["impl"]): r for r in rows}
        times = by["times"]["instructions"] / whole["64x1", "shunt"]["instructions"] * 100
        wanted.append(("% of a whole request that its times take, 64x1", times, OBSERVED_WANTED["times"], False))
        wanted.append(("% of a whole request that counting by virtual host adds, 64x1",
                       added_percent(whole, ("64x1", "vhosts"), ("64x1", "shunt")), OBSERVED_WANTED["vhosts"], False))
        wanted += [(f"% that a log of errors and 1 % adds, {case}", added_percent(by, f"{case}-log", case),
                    OBSERVED_WANTED["log"], False) for case in ("64x1", "8x32")]
        wanted += [(f"% of a whole request that a capture adds, {case}",
                    added_percent(whole, (case, "captured"), (case, "shunt")), OBSERVED_WANTED["capture"], False)
                   for case in ("64x1", "8x32")]
    target_table(wanted)


def handshakes(args, connections):
    """connections: {with TLS or without: what a worker has of one}."""
    build("bench_handshakes")
    rows = run("bench_handshakes", each=shower(args))
    if args.json:
        return
    by = {(r["impl"], r["threads"]): r for r in rows}
    table(["handshakes by", "threads", "a second", "times one thread's", "us of CPU each", "times OpenSSL's"],
          [[impl, str(n), number(r["per_second"]), f"{r['gain']:.2f}", number(r["cpu_ns"] / 1e3),
            f"{r['cpu_ns'] / by['openssl', n]['cpu_ns']:.2f}"] for (impl, n), r in by.items()])
    target_table([
        ("handshakes of two threads / one, of what OpenSSL gains",
         by["shunt", 2]["gain"] / by["openssl", 2]["gain"], GAIN_WANTED, True),
        ("us of a worker, a connection with TLS", connections["shunt"]["ns_op"] / 1e3, WORKER_US_WANTED, False)])


def thread_ns(pid, name):
    """CPU time of the thread of that name."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int((task / "schedstat").read_text().split()[0])
    sys.exit(f"process {pid} has no thread {name}")


def testpmd(frame_len):
    """A row of what dpdk-testpmd takes for a frame between two memifs on one core, forwarding in mode io; None = no
    such program. It has no clock of its own that other work on the machine would not stretch: CPU time of its
    forwarding thread, and what it says that it forwarded."""
    if not shutil.which("dpdk-testpmd"):
        return None
    memif = f"socket-abstract=yes,socket=shunt-testpmd-{os.getpid()}"
    cores = sorted(os.sched_getaffinity(0))
    command = ["dpdk-testpmd", "--no-huge", "--no-pci", "--no-telemetry", "-m", "256",
               f"--file-prefix=testpmd-{os.getpid()}", "--lcores", f"0@{cores[0]},1@{cores[-1]}",
               f"--vdev=net_memif0,role=server,{memif}",
               f"--vdev=net_memif1,role=client,{memif}", "--", "-i", "--forward-mode=io", "--nb-cores=1",
               "--total-num-mbufs=8192", "--burst=32", f"--txpkts={frame_len}", "--no-mlockall", "--mbuf-size=2176"]
    atexit.register(shutil.rmtree, f"/run/dpdk/testpmd-{os.getpid()}", ignore_errors=True)  # which DPDK leaves
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as p:

        def say(line):
            p.stdin.write(line + "\n")
            p.stdin.flush()

        time.sleep(2)  # the two ends find each other
        say("start tx_first 2")
        time.sleep(0.5)
        begun = thread_ns(p.pid, TESTPMD_THREAD)
        say("clear port stats all")
        time.sleep(TESTPMD_S)
        say("show port stats all")
        ended = thread_ns(p.pid, TESTPMD_THREAD)
        say("stop")
        said = p.communicate("quit\n", timeout=30)[0]
    stats = said.split("cleared")[-1]
    n = sum(map(int, re.findall(r"RX-packets: (\d+) +RX-missed", stats)[:2]))
    if p.returncode or not n:
        sys.exit(f"{' '.join(command)} failed:\n{said}")
    return {"bench": "packets", "impl": "testpmd_io", "case": "memif", "n": 64, "ns_op": round((ended - begun) / n, 1),
            "bytes": frame_len}


def packets(args):
    make(BUILD_EAL, [], ["tests/bench/bench_packets"])
    show = shower(args)
    rows = counted(BUILD_EAL / "tests/bench/bench_packets", args, show)
    theirs = testpmd(rows[0]["bytes"])
    if theirs:
        rows.insert(1, theirs)
        show(theirs)
    ways_table(args, rows)
    if args.json:
        return
    if not theirs:
        print("dpdk-testpmd is not there (Debian package dpdk-dev): io, the same loop in our program, is the ceiling\n")
    by = {r["impl"]: r for r in rows}
    wanted = [(f"packet rate of shunt / {impl}", by[impl]["ns_op"] / by["shunt"]["ns_op"], 0.4, True)
              for impl in ("io", "testpmd_io") if impl in by]
    wanted += [(f"{what} of a frame by IPv6 / by IPv4", by["ip6"][key] / by["shunt"][key], IP6_WANTED, False)
               for what, key in (("ns", "ns_op"), ("instructions", "instructions")) if key in by["ip6"]]
    target_table(wanted)


def ways_table(args, rows):
    if args.json:
        return
    ours = {r["case"]: r for r in rows if r["impl"] == "shunt"}
    table(["case", "by", "ns each", "times ours", "instructions", "bytes"],
          [[r["case"], r["impl"], number(r["ns_op"]), f"{r['ns_op'] / ours[r['case']]['ns_op']:.2f}",
            number(r.get("instructions")), str(r.get("bytes", "-"))] for r in rows])
    wanted = [(f"{r['impl']} / shunt, {r['case']}", r["ns_op"] / ours[r["case"]]["ns_op"],
               WAYS_WANTED[args.bench, r["case"]], True)
              for r in rows if r["impl"] not in ("shunt", "evp") and (args.bench, r["case"]) in WAYS_WANTED]
    if wanted:
        target_table(wanted)


def workers(args):
    build("bench_workers")
    rows = run("bench_workers", each=shower(args))
    if args.json:
        return
    table(["case", "two workers", "requests/s of one", "of two", "times", "ns of CPU a request, one", "two",
           "times by CPU"],
          [[r["case"], r["impl"], number(r["one_s"]), number(r["two_s"]), f"{r['times']:.2f}", number(r["one_ns"]),
            number(r["two_ns"]), f"{r['cpu_times']:.2f}"] for r in rows])
    target_table([(f"two workers / one, {r['case']}", r["times"], 1.9, True) for r in rows if r["impl"] == "shared"])


def scale(args, each):
    """The rows of tests/bench/scale.py."""
    if not PYTHON.exists():
        sys.exit("the tests' Python is not there: tools/setup makes it")
    make(BUILD_EAL, [], ["ctrl/shuntd", "tools/shuntctl"])
    command = [str(PYTHON), str(ROOT / "tests/bench/scale.py"), str(BUILD_EAL), args.bench]
    return run_command(command + (["--clusters", str(args.sizes[0])] if args.sizes else []), each)


def clusters(args):
    rows = scale(args, shower(args))
    if args.json:
        return
    table([f"{rows[0]['n']} clusters", "by", "s of CPU", "s of all CPU", "s until live", "MiB when live", "MiB later"],
          [[r["case"], r["impl"], f"{r['cpu_s']:.2f}", f"{r['all_cpu_s']:.2f}", f"{r['wall_s']:.2f}",
            number(r["mib"]), number(r["mib_later"])] for r in rows])
    target_table([t for r in rows if r["impl"] == "shunt"
                  for t in ((f"s of the control thread, {r['case']}", r["cpu_s"], 1, False),
                            (f"MiB above no configuration, {r['case']}", r["mib"], 64, False))])


def updates(args):
    rows = scale(args, shower(args))
    if args.json:
        return
    table([f"{rows[0]['n']} clusters", "updates", "s", "snapshots", "s of CPU", "s of the worker", "turns > 1 ms"],
          [[r["case"], str(r["sent"]), number(r["seconds"]), str(r["snapshots"]), number(r["cpu_s"]),
            f"{r['worker_busy_s']:.3f}", str(r["turns_over_1ms"])] for r in rows])
    target_table([t for r in rows if r["sent"]
                  for t in ((f"turns of the worker over 1 ms, {r['case']}", r["turns_over_1ms"], 0, False),
                            (f"snapshots an update, {r['case']}", r["snapshots"] / r["sent"], 0.2, False))])


FLOODS_TARGETS = ("ctrl/shuntd", "tools/shuntctl", "tools/shunt-xds/shunt-xds", "tools/shunt-load/shunt-load")


def floods(args):
    if not PYTHON.exists():
        sys.exit("the tests' Python is not there: tools/setup makes it")
    make(BUILD_EAL, [], FLOODS_TARGETS)
    command = [str(PYTHON), str(ROOT / "tests/bench/floods.py"), str(BUILD_EAL)]
    for name in ("seconds", "repeats", "only"):
        value = getattr(args, name)
        command += [] if value is None else [f"--{name}", str(value)]
    highest, *rows = run_command(command, shower(args))
    if args.json:
        return
    asked, most, half = (number(highest[what]) for what in ("asked", "highest", "half"))
    print(f"{asked} requests a second took {highest['busy']:.0%} of the worker: it could do {most}; below are {half}\n")
    figures = [f"{what}_{way}" for what in ("p50_us", "p99_us") for way in ("quiet", "flood", "elsewhere")]
    table(["flood of", "a second", *(f.replace("_", " ", 1).replace("_", ", ") for f in figures),
           "p99 times", "elsewhere", "busy % quiet", "flood", "failed", "pools KiB", "flood", "process + KiB"],
          [[r["flood"], number(r["attack_rate"]), *(number(r[f]) for f in figures),
            f"{r['times']:.2f}", f"{r['times_elsewhere']:.2f}",
            *(f"{100 * r[f'busy_{way}']:.0f}" for way in ("quiet", "flood")), str(r["failed"]),
            *(number(r[what] / 1024) for what in ("pools_quiet", "pools_flood", "process_grown"))] for r in rows])
    for r in (highest, *rows):
        if r["failed"]:
            print(f"{r['failed']} requests FAILED, {r['flood'] or 'at the highest rate'}: {r['why']}")


def main():
    benches = {"route": route, "pick": pick, "update": update, **dict.fromkeys(WAYS, ways), "workers": workers,
               "clusters": clusters, "updates": updates, "floods": floods}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", choices=benches)
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--instructions", action="store_true", help="of an operation too, by callgrind")
    parser.add_argument("--seconds", type=float, help="of each load of floods (3)")
    parser.add_argument("--repeats", type=int, help="of each flood (3), as far as six minutes have room")
    parser.add_argument("--only", help="one of the floods, as key-updates")
    parser.add_argument("sizes", nargs="*", type=int, metavar="SIZE")
    args = parser.parse_intermixed_args()
    benches[args.bench](args)


if __name__ == "__main__":
    main()
