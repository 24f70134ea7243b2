#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows Shunt at work between a client and its backends on this machine.

    tools/demo                 installs what is missing, builds, and shows the main job live
    tools/demo --check         the same without a terminal; exits 0 when every statement held, else 1
    tools/demo --keep          leaves everything running and prints commands to play with
    tools/demo --stop [NAME]   removes what --keep, or a demo that was killed, left: all of it, or one
    --no-setup                 neither installs nor builds: runs what is in ./build, or $SHUNT_BUILD

Everything lives in network namespaces of its own and is removed at the end, also after Ctrl-C or a
failure; what a SIGKILL leaves, --stop and the next demo remove. Every number is counted at the client,
and then compared with what the balancer says of itself.
"""

import argparse
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests" / "integ"))

# pylint: disable=wrong-import-position
from demo_world import TLS_PORT, TLS_URL, WHO, Count, DemoWorld, Meter  # noqa: E402
from lab import Lab, LabError, drop_dead, wait_until  # noqa: E402
from narrator import Narrator  # noqa: E402
from testbed import BUILD, HERE, LINKS, PORT, URL, VIP, free_of_addresses  # noqa: E402
from world import RPC_PATH, SIZES, WEB_BACKENDS, WEB_PORT, split_of  # noqa: E402

LABEL = "shunt-demo"
TARGETS = ("ctrl/shuntd", "tools/shuntctl", "tools/shunt-xds/shunt-xds")
WEIGHTS = (75, 25)
NEW_WEIGHTS = (10, 90)
VICTIM, SIBLING = "green-1", "green-2"
TOLERANCE = 4.0  # percentage points; nearly six standard deviations of what is measured
MEASURED = 4000  # requests behind each statement about a split
SAMPLE = 200
LOAD = {"clients": 8, "streams": 8, "rate": 200}  # h2load's; the rate is that of each client
LOAD_RATE = LOAD["clients"] * LOAD["rate"]
IN_FLIGHT = LOAD["clients"] * LOAD["streams"]
LOAD_SECONDS = 8
BEFORE_S = 1.5  # of the load's time, until something happens
COME_BACK_S = 15  # the balancer's reconnect backoff has grown to a few seconds by then
PATIENCE_S = 60


class Demo:
    """The steps, each with what it shows and what it verifies."""

    def __init__(self, lab, tell):
        self.lab = lab
        self.tell = tell
        self.meter = Meter(lab)
        self.loaded = {"blue": 0, "green": 0}  # answers to h2load, told apart by their size
        self.mixed = 0  # answers to a load that lost some: no telling apart
        self.lost = 0
        self.calls = 0
        self.world = None

    @property
    def bed(self):
        return self.world.bed

    def run(self):
        self.build_world()
        self.show_split()
        self.show_weight_change()
        self.show_dying_backend()
        self.show_return()
        self.show_calls()
        self.show_certificate_change()
        self.show_counters()

    def build_world(self):
        prefix = self.lab.prefix
        self.tell.step("Three network namespaces, joined by two veth pairs")
        self.tell.say(f"{prefix}-client  --  {prefix}-lb  --  {prefix}-backends")
        self.world = DemoWorld(self.lab)
        self.tell.say(f"In `backends`: four nghttpd ({', '.join(WEB_BACKENDS)}) and a gRPC server.")
        self.bed.start_xds()
        self.tell.say("In `lb`: shunt-xds serves a copy of examples/demo/xds ...")
        self.world.start_daemon()
        self.tell.say(f"... and shuntd, on two DPDK virtual devices, answers on {VIP}.")
        silent = all(free_of_addresses(self.lab, near_if) for _, near_if in LINKS.values())
        self.tell.verify(silent, "the kernel of `lb` has no address there: only shuntd can answer")

    # -- counting at the client

    def measure(self, n=MEASURED):
        """The split of n requests, drawn as it comes in."""
        count = Count()
        while count.sent < n:
            count += self.meter.ask(SAMPLE)
            self.tell.bar(count, f"of {count.sent}", last=count.sent >= n)
        return count

    def watch(self, load, seconds, note):
        """Samples beside the load, each one drawn, until it ends or the time is over."""
        samples = []
        end = time.monotonic() + seconds
        while load.alive() and time.monotonic() < end:
            samples.append(self.meter.ask(SAMPLE))
            self.tell.bar(samples[-1], note)
            time.sleep(0.1)
        if samples:
            self.tell.bar(samples[-1], note, last=True)
        return samples

    def start_load(self, name, url=URL):
        self.tell.say(f"A steady load of {LOAD_RATE} requests a second begins.")
        load = self.bed.start_h2load(name, url=url, requests=LOAD_RATE * LOAD_SECONDS, **LOAD)
        wait_until(lambda: "spawning" in load.output() or not load.alive(), 30, "h2load's start")
        return load

    def end_load(self, load):
        """Its report, entered in our books; and how many of its requests were lost."""
        report = self.bed.h2load_report(load, PATIENCE_S)
        lost = report.total - report.status_2xx
        if lost:
            self.mixed += report.status_2xx
            self.lost += lost
        else:
            for cluster, n in zip(SIZES, split_of(report)):
                self.loaded[cluster] += n
        return report, lost

    def verify_split(self, count, weights, what):
        blue = count.percent(count.of("blue"))
        self.tell.verify(abs(blue - weights[0]) <= TOLERANCE and count.failed == 0,
                         f"{what}: {blue:.1f}/{100 - blue:.1f}, wanted {weights[0]}/{weights[1]} "
                         f"(+-{TOLERANCE:.0f}); {count.failed} of {count.sent} requests failed")

    # -- the steps

    def show_split(self):
        self.tell.step(f"The routes give blue {WEIGHTS[0]} % and green {WEIGHTS[1]} %")
        before = self.endpoint_requests()
        count = self.measure()
        self.verify_split(count, WEIGHTS, "the split")
        after = self.endpoint_requests()
        self.tell.verify({name: after[name] - before[name] for name in WEB_BACKENDS} == count.by,
                         "shuntctl counts for each backend the very answers that the client counted")

    def endpoint_requests(self):
        by_address = {e["endpoint"]: e["requests"] for e in self.bed.show("clusters")["endpoints"]}
        return {name: by_address[f"{ip}:{WEB_PORT}"] for name, (_, ip) in WEB_BACKENDS.items()}

    def show_weight_change(self):
        self.tell.step(f"The weights change to {NEW_WEIGHTS[0]}/{NEW_WEIGHTS[1]} under load")
        load = self.start_load("load-weights")
        samples = self.watch(load, BEFORE_S, "before")
        written = time.monotonic()
        self.world.set_weights(*NEW_WEIGHTS)
        self.tell.say(f"{self.world.routes_file.name} in the served folder is rewritten.")
        later = self.watch(load, PATIENCE_S, "after")
        report, lost = self.end_load(load)
        turned = next((s for s in later if s.of("green") > s.of("blue")), None)
        self.tell.verify(turned, f"it took effect in {turned.ended - written:.2f} s at most, amid the "
                                 "load" if turned else "it took effect while the load ran")
        others = sum(samples + later, Count())
        self.tell.verify(lost == others.failed == 0,
                         f"{lost} of {report.total} requests of the load failed, and {others.failed} "
                         f"of the {others.sent} others")
        self.verify_split(self.measure(), NEW_WEIGHTS, "the new split")

    def show_dying_backend(self):
        self.tell.step(f"The backend {VICTIM} dies under load")
        load = self.start_load("load-death")
        self.watch(load, BEFORE_S, "before")
        self.world.backends[VICTIM].kill()
        self.tell.say(f"{VICTIM} was killed (SIGKILL).")
        samples = self.watch(load, PATIENCE_S, "after")
        report, lost = self.end_load(load)
        self.tell.verify(lost <= IN_FLIGHT, f"{lost} of {report.total} requests of the load were in its "
                                            f"hands and failed; {IN_FLIGHT} can be in flight")
        later = sum(samples, Count())
        self.tell.verify(later.sent and later.failed == 0,
                         f"{later.failed} of {later.sent} requests begun after its death failed")
        self.tell.verify(later.by[VICTIM] == 0 < later.by[SIBLING],
                         f"its traffic moved: {VICTIM} answered {later.by[VICTIM]} of them, {SIBLING} "
                         f"{later.by[SIBLING]}")
        self.verify_split(self.measure(), NEW_WEIGHTS, "the clusters' split stays")

    def show_return(self):
        self.tell.step(f"{VICTIM} comes back")
        cluster, ip = WEB_BACKENDS[VICTIM]
        self.world.backends[VICTIM] = self.bed.start_http_backend(VICTIM, ip, SIZES[cluster], WEB_PORT)
        started = time.monotonic()
        lost = 0
        while True:
            sample = self.meter.ask(SAMPLE)
            lost += sample.failed
            self.tell.bar(sample, "now")
            took = time.monotonic() - started
            if sample.by[VICTIM] or took > COME_BACK_S:
                break
            time.sleep(0.2)
        count = self.measure(MEASURED // 4)
        halves = abs(count.by[VICTIM] - count.by[SIBLING]) <= TOLERANCE / 100 * count.sent
        self.tell.verify(sample.by[VICTIM] and halves,
                         f"it answers again {took:.1f} s after its start, and shares with {SIBLING}")
        self.tell.verify(lost + count.failed == 0, f"{lost + count.failed} requests failed meanwhile")

    def show_calls(self):
        self.tell.step(f"gRPC: calls of {RPC_PATH}... go to the gRPC server")
        self.call("unary", 100, "100 calls came back as sent", count=100)
        self.call("client_streaming", 1, "a stream of 500 messages arrived whole", chunks=500)
        self.call("bidi", 1, "a conversation of 200 messages each way", rounds=200)
        streams = self.call("held_streams", 4, "4 streams at once from the server", streams=4,
                            seconds=0.5)
        self.tell.verify(len(streams) == 4 and all(s["complete"] and s["backend"] == "rpc-1"
                                                   for s in streams),
                         f"all {sum(s['messages'] for s in streams)} messages of theirs came, from "
                         "rpc-1")

    def call(self, scenario, n, statement, **arguments):
        """A scenario of n calls, which compares every message itself. Its result; [] when it failed."""
        self.calls += n
        try:
            result = self.bed.run_calls(scenario, **arguments)
        except LabError as error:
            self.tell.verify(False, f"{statement}: {str(error).splitlines()[-1]}")
            return []
        self.tell.verify(True, statement)
        return result

    def show_certificate_change(self):
        self.tell.step(f"The certificate of port {TLS_PORT}, which has TLS, is replaced under load")
        load = self.start_load("load-certificate", url=TLS_URL)
        before = self.shake_hands_for(load, BEFORE_S)
        self.tell.verify(before and {name for name, _ in before} == {"first"},
                         f"{len(before)} new clients saw the first certificate, and trust it")
        written = time.monotonic()
        self.world.install("second")
        self.tell.say("tls.key and tls.crt were replaced, one after the other.")
        after = self.shake_hands_for(load, PATIENCE_S)
        report, lost = self.end_load(load)
        seen = [name for name, _ in after]
        took = next((at - written for name, at in after if name == "second"), None)
        self.tell.verify(took is not None, f"a new client saw the second one after {took:.2f} s" if took is not None
                         else "a new client saw the second one while the load ran")
        self.tell.verify(took is not None and set(seen[seen.index("second"):]) == {"second"} and None not in seen,
                         f"so did all others since; each of {len(seen)} handshakes ended well")
        self.tell.verify(lost == 0, f"{lost} of {report.total} requests of the load failed")

    def shake_hands_for(self, load, seconds):
        """[(whose certificate a new client saw, when its handshake had ended)], beside the load."""
        seen = []
        end = time.monotonic() + seconds
        while load.alive() and time.monotonic() < end:
            seen.append((self.world.shake_hands(), time.monotonic()))
        return seen

    def show_counters(self):
        self.tell.step("The counters of the stats socket, beside the client's")
        total = self.meter.total
        mine = {**{name: total.of(name) + self.loaded[name] for name in SIZES}, "rpc": self.calls}
        shown = self.idle_clusters()
        self.tell.say("cluster     shuntctl: ok   failed     client: ok")
        for name, n in mine.items():
            self.tell.say(f"{name:8} {shown[name]['ok']:15} {shown[name]['failed']:8} {n:14}")
        if self.mixed:
            self.tell.say(f"and {self.mixed:37} of blue or green: the load that lost {self.lost}")
        web = ("blue", "green")
        same = all(shown[n]["ok"] == mine[n] for n in (mine if not self.mixed else ("rpc",)))
        sums = sum(shown[n]["ok"] for n in web) == sum(mine[n] for n in web) + self.mixed
        self.tell.verify(same and sums, "both count the same answers, to the last one")
        failed = sum(cluster["failed"] for cluster in shown.values())
        lost = self.lost + total.failed
        self.tell.verify(failed == lost, f"and the same failures: shuntctl {failed}, the client {lost}")
        info = self.bed.show("info")
        for key in ("version", "state", "uptime_s", "requests", "snapshots_published", "xds_state"):
            self.tell.say(f"{key:20} {info[key]}")

    def idle_clusters(self):
        def idle():
            clusters = self.bed.show("clusters")["clusters"]
            return all(c["active"] == c["queued"] == 0 for c in clusters) and clusters
        return {c["cluster"]: c for c in wait_until(idle, 30, "the end of the last request")}

    def commands(self):
        """What to play with: (what it does, command)."""
        prefix, run = self.lab.prefix, self.lab.dir
        client = f"ip netns exec {prefix}-client"
        shuntctl = f"{BUILD}/tools/shuntctl --socket {self.bed.stats_socket}"
        return (
            ("who answers", f"{client} nghttp -m 1000 {URL}{WHO} | sort | uniq -c"),
            ("load", f"{client} h2load -D 10 -c 8 -m 8 {URL}{WHO}"),
            ("gRPC calls", f"{client} {HERE}/grpc_calls.py {VIP}:{PORT} unary"),
            ("other weights, live when saved (or use an editor)",
             f"sed -i 's/\"weight\": [0-9]*/\"weight\": 50/' {self.world.routes_file}"),
            ("did they arrive", f"{shuntctl} show xds"),
            (f"the certificate that clients of port {TLS_PORT} see",
             f"{client} openssl s_client -connect {VIP}:{TLS_PORT} </dev/null 2>&1 | openssl x509 -noout -subject"),
            ("the other one, live when both files are there",
             f"cp {run}/tls/first.key {run}/tls/tls.key; cp {run}/tls/first.pem {run}/tls/tls.crt"),
            ("what is known of it", f"{shuntctl} show certs"),
            ("clusters and backends (`help` names what else there is to see)",
             f"{shuntctl} show clusters"),
            (f"kill {VICTIM}", f"kill -9 {self.world.backends[VICTIM].pid}"),
            ("and start it again", f"ip netns exec {prefix}-backends nghttpd -D --no-tls -m 1000 "
             f"-a {WEB_BACKENDS[VICTIM][1]} -d {run}/www-{VICTIM} {WEB_PORT}"),
            ("logs", f"tail -n 20 {run}/*.log"),
            ("stop it all", f"{ROOT}/tools/demo --stop {prefix}"),
        )


def prepare():
    """Packages and programs; two demos that start at once build one after the other."""
    root = os.open(ROOT, os.O_RDONLY)
    fcntl.flock(root, fcntl.LOCK_EX)
    steps = [[ROOT / "tools" / "setup", "build"]]
    if not (BUILD / "build.ninja").exists():
        steps.append(["meson", "setup", BUILD, ROOT])
    steps.append(["ninja", "-C", BUILD, *TARGETS])
    try:
        for argv in steps:
            print("demo:", *map(str, argv), flush=True)
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        sys.exit(f"demo: {error}")
    finally:
        os.close(root)


def become_root():
    if os.geteuid() == 0:
        return
    if not shutil.which("sudo"):
        sys.exit("demo: network namespaces need root")
    print("demo: network namespaces need root: going on with sudo", flush=True)
    os.execvp("sudo", ["sudo", "--preserve-env=SHUNT_BUILD", __file__, "--no-setup", *sys.argv[1:]])


def stop(name):
    stopped = drop_dead(LABEL, name)
    for prefix in stopped:
        print(f"demo: {prefix} is gone")
    if not stopped:
        print(f"demo: no {name or LABEL} was left")
    return 1 if name and not stopped else 0


def show(options):
    lab = Lab(LABEL, leashed=not options.keep)
    try:
        return show_in(lab, options)
    except KeyboardInterrupt:
        left = (f"all of it goes on, until: {ROOT}/tools/demo --stop {lab.prefix}" if lab.kept
                else "everything it made is gone")
        print(f"\ndemo: interrupted; {left}", file=sys.stderr)
        return 130


def show_in(lab, options):
    tell = Narrator(options.check)
    with lab:
        demo = Demo(lab, tell)
        try:
            demo.run()
        except (LabError, TimeoutError, ValueError) as error:
            tell.verify(False, f"the demo goes on: {str(error).strip()}")
        daemon = demo.world and demo.bed.daemon
        if daemon and not daemon.alive():
            tell.verify(False, f"shuntd lives: it ended with {daemon.popen.returncode}\n"
                               f"{daemon.output()[-2000:].strip()}")
        if options.keep and not tell.failed:
            lab.keep()
            tell.step(f"All of it goes on, as {lab.prefix}. Play with it, as root:")
            for what, how in demo.commands():
                print(f"\n   {tell.paint('dim', '# ' + what)}\n   {how}")
    print(f"\ndemo: {len(tell.failed)} statements did not hold" if tell.failed else
          "\ndemo: every statement held")
    return 1 if tell.failed else 0


def parse_arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="without a terminal, for scripts")
    what.add_argument("--keep", action="store_true", help="leave everything running at the end")
    what.add_argument("--stop", nargs="?", const="", metavar="NAME", help="remove what is left")
    parser.add_argument("--no-setup", action="store_true", help="neither install nor build")
    return parser.parse_args()


def main():
    options = parse_arguments()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's `&` leaves it ignored
    if not options.no_setup and options.stop is None:
        prepare()
    become_root()
    return show(options) if options.stop is None else stop(options.stop or None)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        sys.exit(130)
