# SPDX-License-Identifier: Apache-2.0
"""Where a subject of tools/compare stands and what is measured of it: on veth between a generator and a
backend that are the same for everybody. One core is the subject's, the other one everything else's.

A figure is (what, unit, value); what is measured in one way of everybody has one name.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import compare_closing
import compare_ways
import h2load
import load_agent
from compare_sample import Sample
from lab import Lab, LabError, wait_until
from testbed import LINKS, PORT, URL, VIP, Testbed

HERE = pathlib.Path(__file__).resolve().parent
BACKEND = "10.82.0.1"
BACKEND_PORT = 8080
ANSWER = 64  # bytes
OFFLOADS = ("tx", "gso", "tso", "gro")
LABEL = "shunt-compare"
RUN_TIMEOUT_S = 120
WARM_UP = 4000  # requests
CHURN = 200  # connections
ENOUGH = 10_000  # requests, of which fewer tell nothing of what a way of speaking adds
IDLE_S = 3  # in which what making so many connections took may be given back
IDLE_TLS_S = 12  # the same of handshakes, which our threads give back every ten seconds at most (TLS-218)
IDLE, IDLE_RATE = 2000, 2000  # connections, requests a second when they are opened
MANY = 10_000  # routes
CHURN_FIGURE = "CPU per connection with one request"
PART_FIGURE = f"{CHURN_FIGURE}, the worker's part"
IDLE_FIGURES = ("memory per idle connection, of the process", "memory per idle connection, with the kernel's slabs")
QUANTILES = ("p50", "p99", "p99.9")
SHAPES = {"8x32": (8, 32), "64x1": (64, 1)}  # connections, requests of each at a time
BODY = 1 << 20  # bytes, where bodies are large
BODY_SHAPES = {"1x1": (1, 1), "8x8": (8, 8)}
BODY_WAYS = ("GET", "POST")  # that have them in the answer, in the request


def cores():
    """(of the subject, of everything else)"""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise LabError("two cores are needed: one for what is measured, one for what loads it")
    return usable[-1], usable[0]


def first(*argv):
    """Before others on its core, so that what else the machine does is not measured."""
    return ["chrt", "-r", "1", *argv]


def tasks(pid, only=""):
    """Folders in /proc of all threads that a Lab's process started, or of those of this name."""
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            session = int((process / "stat").read_text().rsplit(")", 1)[1].split()[3])
            if session == pid:
                yield from (task for task in (process / "task").iterdir()
                            if (task / "comm").read_text().startswith(only))


def prefer(pid, only="", wanted=True):
    """The same for what runs already, or no longer."""
    for task in tasks(pid, only):
        policy = os.SCHED_RR if wanted else os.SCHED_OTHER
        os.sched_setscheduler(int(task.name), policy, os.sched_param(int(wanted)))


def cpu_s(pid, only="", but=None):
    """CPU seconds of them, without those of the other name."""
    total = 0.0
    for task in tasks(pid, only):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if not but or not (task / "comm").read_text().startswith(but):
                total += int((task / "schedstat").read_text().split()[0]) / 1e9
    return total


def prefix(number):
    return f"/r{number:05}/"


def path(n_routes):
    """What is asked for: the last of the routes. With one that takes everything, a path as long: what many add
    is not what a longer one costs."""
    return prefix((n_routes if n_routes > 1 else MANY) - 1) + h2load.MARK.lstrip("/")


def cpu_per_request(shape, n_routes=1):
    """What that figure is called."""
    return f"CPU per request {shape}" + (f", {n_routes} routes" if n_routes > 1 else "")


def cpu_added(shape, n_routes):
    return f"CPU added by {n_routes} routes {shape}"


def shapes_of(way):
    """HTTP/1.1 has one request at a time."""
    return {shape: size for shape, size in SHAPES.items() if not way.http1 or size[1] == 1}


def prefixes(n_routes):
    return [prefix(i) for i in range(n_routes)] if n_routes > 1 else []


def memory(pid):
    """Bytes that no process but those of a Lab's process has."""
    total = 0
    for stat in {task.parent.parent for task in tasks(pid)}:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            rows = (stat / "smaps_rollup").read_text().splitlines()[1:]
            total += sum(int(row.split()[1]) for row in rows if row.startswith(("Private_Dirty:", "Swap:")))
    return total * 1024


def slab():
    """Bytes of the kernel's own objects, of the whole machine."""
    rows = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("Slab:")) * 1024


class Subject:
    """One that runs, from `with` on, with so many routes. Figures of requests that failed stay away; those of too few
    to tell are None."""

    name = transport = None
    is_peer = True
    routes = True  # it has any to choose from

    def __init__(self, n_routes=1, way=compare_ways.CLEAR):
        self.n_routes = n_routes
        self.way = way
        self.credentials = None  # of a way with TLS
        self.failed = 0
        self.lab = self.bed = None

    def __enter__(self):
        self.lab = Lab(LABEL)
        try:
            if self.way.front or self.way.back:
                self.credentials = compare_ways.Credentials(self.lab)
            self.build()
        except BaseException:
            self.lab.close()
            raise
        return self

    def __exit__(self, *_):
        self.lab.close()

    def build(self):
        """Starts it, and its warm-up."""
        raise NotImplementedError

    def seen(self, sample):
        """The same sample; what failed in it is kept in mind."""
        self.failed += sample.failed
        if sample.failed:
            print(f"{self.name} {self.transport}: {sample.failed} FAILED: {sample.why}", file=sys.stderr, flush=True)
        return sample

    def figures(self, seconds, rate):
        """All of it: loads that last so long, latency at so many requests a second."""
        if self.n_routes > 1:
            yield from self.routes_figures(seconds)
            return
        yield from self.all_load_figures(seconds)
        yield from self.body_figures(seconds)
        yield from self.more_figures(seconds)
        yield from self.idle_figures()
        yield from self.churn_figures(seconds)
        yield from self.latency_figures(seconds, rate)

    @classmethod
    def of_ways(cls):
        """Those that show together what ways of speaking cost."""
        return [cls(way=way) for way in compare_ways.WAYS]

    def way_figures(self, seconds):
        """What a way of speaking costs: requests, and with TLS or to compare with it also connections."""
        for shape, size in shapes_of(self.way).items():
            us = self.seen(self.measure_steady(*size, seconds)).subject_us(ENOUGH)
            yield compare_ways.named(cpu_per_request(shape), self.way), "us", us
        yield from self.way_connections(seconds)

    def way_connections(self, seconds):
        if self.way.back or self.way.http1:
            return
        # In this order: what many handshakes took is given back while others' memory is looked at.
        for what, unit, value in (*self.idle_figures(), *self.churn_figures(seconds)):
            yield compare_ways.named(what, self.way), unit, value

    def churn_figures(self, seconds):
        yield CHURN_FIGURE, "us", self.seen(self.churn(seconds)).subject_us(CHURN)

    def all_load_figures(self, seconds):
        for shape, (clients, streams) in SHAPES.items():
            yield from self.load_figures(shape, self.seen(self.measure(clients, streams, seconds)))

    def routes_figures(self, seconds):
        """Of many routes."""
        yield from self.all_load_figures(seconds)

    def latency_figures(self, seconds, rate):
        latency = self.seen(self.latency(seconds, rate)).latency
        if not latency["n"]:
            return  # nothing of what was due in time was answered in time
        for quantile in QUANTILES:
            yield f"latency {quantile} at {rate} a second", "us", latency[quantile] / 1e3

    def load_figures(self, shape, sample):
        yield cpu_per_request(shape, self.n_routes), "us", sample.subject_us()
        if self.n_routes > 1:
            return
        yield f"requests per second {shape}", "1/s", sample.per_second
        yield f"requests per second of a core by that CPU {shape}", "1/s", 1e6 / sample.subject_us()
        if sample.others_s:
            yield f"whole-machine CPU per request {shape}", "us", sample.whole_us()
        if sample.busy is not None:
            yield f"generator's busy share {shape}", "%", 100 * sample.busy

    def body_figures(self, seconds):
        """Of large bodies, both ways."""
        for way in BODY_WAYS:
            for shape, size in BODY_SHAPES.items():
                sample = self.seen(self.measure_bodies(way, *size, seconds))
                name, megabytes = f"{way} 1 MiB {shape}", sample.requests * BODY / 1e6
                yield f"bytes per second, {name}", "MB/s", sample.per_second * BODY / 1e6
                yield f"CPU per GB, {name}", "s", 1e3 * sample.subject_s / megabytes
                if sample.others_s:
                    whole_ms = sample.whole_us() * sample.requests / 1e3
                    yield f"whole-machine CPU per GB, {name}", "s", whole_ms / megabytes

    def more_figures(self, _seconds):
        """What only one kind has."""
        return ()

    def idle_figures(self):
        """Connections that have had one request each, and wait."""
        time.sleep(IDLE_S)  # what was before leaves nothing, either
        before, slab_before = memory(self.pid()), slab()
        process = self.hold_idle()
        wait_until(lambda: not process.alive() or "holding " in process.output(), RUN_TIMEOUT_S, "idle connections")
        time.sleep(IDLE_TLS_S if self.way.front else IDLE_S)
        took, slab_took = memory(self.pid()) - before, slab() - slab_before
        process.signal(signal.SIGINT)
        process.wait(RUN_TIMEOUT_S)
        report = json.loads(process.output().splitlines()[-1])
        self.failed += report["failed"] + report["connections"]["idle_lost"]
        held = report["connections"]["idle_held"]
        if held != IDLE:
            raise LabError(f"{self.name} held {held} connections: {process.output()}")
        yield IDLE_FIGURES[0], "B", took / held
        yield IDLE_FIGURES[1], "B", (took + max(0, slab_took)) / held

    def hold_idle(self):
        """A shunt-load that says so when it holds IDLE connections."""
        return self.start_shunt_load("-c", str(IDLE), "-n", str(IDLE), "-r", str(IDLE_RATE), "-T", "30",
                                     "--hold", "1h", "--nap", *(["--tls"] if self.way.front else []))

    def pid(self):
        """Of the process that is measured, and of its session."""
        raise NotImplementedError

    def start_shunt_load(self, *words):
        raise NotImplementedError

    def measure(self, clients, streams, seconds):
        """As many requests as take about so long."""
        raise NotImplementedError

    def measure_steady(self, clients, streams, seconds):
        """The same without what connections cost that come and go; of more than ENOUGH requests, on a machine that can
        do as many."""
        raise NotImplementedError

    def measure_bodies(self, way, clients, streams, seconds):
        """The same of requests with large bodies."""
        raise NotImplementedError

    def churn(self, seconds):
        """Connections with one request each, CHURN at a time."""
        raise NotImplementedError

    def latency(self, seconds, rate=None):
        """Latency from when requests were due, open loop, by shunt-load for everybody. Without a rate, how many
        it gets answered this way."""
        raise NotImplementedError


class OnVeth(Subject):
    """Between h2load and nghttpd. Subclasses start it."""

    transport = "veth"
    offloads = "on"
    mtu = 1500

    def __init__(self, n_routes=1, closing=None, way=compare_ways.CLEAR):
        """closing: with a backend of compare_closing, in this case."""
        super().__init__(n_routes, way)
        self.closing = closing
        self.process = self.backend = self.large = None
        self.first_answer_s = None  # from its start

    def pid(self):
        return self.process.pid

    def build(self):
        self.bed = Testbed(self.lab, mtu=self.mtu)
        if self.offloads == "on":
            self._kernel_network()
        # Asked for again and again at first: the kernel's own second between them would be counted.
        self.lab.exec("client", ["sysctl", "-qw", "net.ipv4.neigh.c0.retrans_time_ms=10"])
        root = self.lab.dir / "www"
        mark = root / path(self.n_routes).lstrip("/")
        mark.parent.mkdir(parents=True)
        mark.write_bytes(b"#" * ANSWER)
        self.large = mark.with_name("large")
        self.large.write_bytes(b"#" * BODY)
        command = (compare_closing.command(self.lab, BACKEND, BACKEND_PORT, self.closing) if self.closing else
                   ["nghttpd", *([] if self.way.back else ["--no-tls"]), "-a", BACKEND, "-d", root, "-m", "1000",
                    BACKEND_PORT, *([self.credentials.path(f"back.{end}") for end in ("key", "pem")]
                                    if self.way.back else [])])
        self.backend = self.lab.start("backends", "backend", first(*command), cpu=cores()[1])
        self.bed.wait_connect("backends", BACKEND, BACKEND_PORT, self.backend)
        if self.way != compare_ways.CLEAR:
            self._start_in_its_way()
            return
        asker = self.lab.start("client", "first", [
            sys.executable, HERE / "first_answer.py", VIP, PORT, path(self.n_routes)], cpu=cores()[1])
        self.process = self.start()
        wait_until(lambda: not asker.alive() or not self.process.alive(), RUN_TIMEOUT_S, "the first answer")
        if not self.process.alive() or asker.wait(1) != 0:
            raise LabError(f"{asker.output()}; {self.name}: {self.process.output()}")
        self.first_answer_s = int(asker.output()) / 1e9 - self.process.started_s
        if not self.closing:
            self._load(8, 8, WARM_UP)

    def _start_in_its_way(self):
        self.process = self.start()

        def answers():
            if not self.process.alive():
                raise LabError(f"{self.name}: {self.process.output()}")
            return self._load(1, 1, 1)[0].perfect
        wait_until(answers, RUN_TIMEOUT_S, "the first answer")
        self._load(8, 1 if self.way.http1 else 8, WARM_UP)

    def more_figures(self, _seconds):
        yield "start to first request answered", "ms", 1e3 * self.first_answer_s

    def _kernel_network(self):
        """Peers get what a kernel's veth can do: super-packets, and no checksums."""
        self.lab.address("lb", "lb-c", f"{VIP}/24")
        self.lab.address("lb", "lb-b", "10.82.255.254/16")
        for far, (far_if, near_if) in LINKS.items():
            for ns, interface in ((far, far_if), ("lb", near_if)):
                words = [word for name in OFFLOADS for word in (name, "on")]
                self.lab.exec(ns, ["ethtool", "-K", interface, *words])

    def start(self):
        """The subject's process."""
        raise NotImplementedError

    def _load(self, clients, streams, requests, file=None, body=None):
        """(h2load's report, its CPU)"""
        url = URL.replace("http:", "https:") if self.way.front else URL
        argv = ["ip", "netns", "exec", self.lab.ns("client"), "taskset", "-c", str(cores()[1]),
                *first(*h2load.arguments(url + (file or path(self.n_routes)), requests=requests, clients=clients,
                                         streams=streams, body=body, http1=self.way.http1))]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as p:
            text = p.stdout.read()
            _, _, usage = os.wait4(p.pid, 0)
            p.returncode = 0
        return h2load.parse(text), usage.ru_utime + usage.ru_stime

    def _counted(self, load):
        """load() -> [(h2load's report, its CPU)], and what all paid for it."""
        before, before_backend = cpu_s(self.process.pid), cpu_s(self.backend.pid)
        done = load()
        reports = [report for report, _ in done]
        ok = sum(r.status_2xx for r in reports)
        why = {kind: sum(getattr(r, kind) for r in reports)
               for kind in ("failed", "errored", "timeout", "succeeded", "status_2xx")}
        others = sum(s for _, s in done) + cpu_s(self.backend.pid) - before_backend
        return Sample(ok, cpu_s(self.process.pid) - before, others, ok / sum(r.seconds for r in reports),
                      sum(r.total for r in reports) - ok, why=why)

    def churn(self, seconds):
        return self._counted(lambda: [self._load(CHURN, 1, CHURN) for _ in range(max(1, round(4 * seconds)))])

    def measure(self, clients, streams, seconds, least=WARM_UP):
        guess, _ = self._load(clients, streams, WARM_UP)
        requests = max(least, int(guess.rate * seconds) // (clients * streams) * clients * streams)
        return self._counted(lambda: [self._load(clients, streams, requests)])

    def measure_steady(self, clients, streams, seconds):
        """CPU is looked at before h2load comes and when it has gone, so that it is that of all of its requests; what
        its connections cost is told by as many with one request each."""
        opened = self.seen(self._counted(lambda: [self._load(clients, 1, clients)]))
        return self.measure(clients, streams, seconds, least=2 * ENOUGH).without(opened)

    def measure_bodies(self, way, clients, streams, seconds):
        page = "/" + str(self.large.relative_to(self.large.parents[1]))
        what = {"body": self.large} if way == "POST" else {"file": page}
        at_once = clients * streams
        guess, _ = self._load(clients, streams, max(at_once, 16), **what)
        requests = max(1, round(guess.rate * seconds / at_once)) * at_once
        return self._counted(lambda: [self._load(clients, streams, requests, **what)])

    def load_of(self, *words):
        """shunt-load's report, of words of its command line."""
        with self._as_shunt_load_needs_it():
            return report_of(self.lab.exec("client", self._shunt_load("--probe", "--nap", *map(str, words)),
                                           timeout=RUN_TIMEOUT_S, check=False))

    def latency(self, seconds, rate=None):
        """Without priority: the kernel takes real-time threads that never sleep off the CPU for 50 ms of each
        second."""
        with self._as_shunt_load_needs_it():
            prefer(self.process.pid, wanted=False)
            prefer(self.backend.pid, wanted=False)
            before, before_backend = cpu_s(self.process.pid), cpu_s(self.backend.pid)
            report = report_of(self.lab.exec("client", self._shunt_load(
                "--probe", "--nap", *latency_words(seconds, rate)),
                timeout=RUN_TIMEOUT_S, check=False))
            prefer(self.process.pid)
            prefer(self.backend.pid)
        return Sample(report["sent"], cpu_s(self.process.pid) - before,
                      cpu_s(self.backend.pid) - before_backend, report["per_second"], report["failed"],
                      latency=report["latency_ns"], why=why_of(report))

    def _shunt_load(self, *words):
        return load_agent.argv("run", *load_agent.client_words(), "--check", "same", "-p", path(self.n_routes),
                               *words, core=cores()[1])

    def idle_figures(self):
        with self._as_shunt_load_needs_it():
            yield from super().idle_figures()

    def start_shunt_load(self, *words):
        return self.lab.start("client", "idle", self._shunt_load(*words))

    @contextlib.contextmanager
    def _as_shunt_load_needs_it(self):
        """It checks what the kernel leaves to a device that is not there: checksums, the size of a packet."""
        self._checksums("off")
        yield
        self._checksums(self.offloads)

    def _checksums(self, state):
        self.lab.exec("lb", ["ethtool", "-K", "lb-c", "tx", state, "gso", state, "tso", state])


def latency_words(seconds, rate):
    return ["-c", "64", *(["-r", str(rate)] if rate else []), "-D", str(max(1.0, seconds)), "-w", "0.3"]


def report_of(done):
    """Of a run of shunt-load that has ended."""
    if not done.stdout.strip():
        raise LabError(f"shunt-load: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def why_of(report):
    """What its requests came to, of a report of shunt-load's."""
    return {**{name: n for name, n in report["outcomes"].items() if n}, "status": report["first_odd_status"]}


def said(argv, before):
    """The word behind `before` in what a program says of its version."""
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=30, check=False)
    text = done.stdout + done.stderr
    at = text.find(before)
    return text[at + len(before):].split()[0] if at >= 0 else "?"


