# SPDX-License-Identifier: Apache-2.0
"""shuntd as tools/compare measures it: on veth as its peers, and on memif between the two ends of one
shunt-load, where no kernel is in the way.

A worker that polls is always on the CPU: its cost is its CPU time times its busy share. That this is what it
is worth shows at saturation: there the cost must say how many requests a second one gets.
"""

import json
import statistics
import time

import compare_ways
import load_agent
import resources
from compare_bed import (ANSWER, BACKEND, BACKEND_PORT, BODY, CHURN, CHURN_FIGURE, PART_FIGURE, RUN_TIMEOUT_S, SHAPES,
                         OnVeth, Subject, cores, cpu_added, cpu_per_request, cpu_s, first, latency_words, path, prefer,
                         prefixes, report_of, said, why_of)
from compare_sample import Look, Sample, spent, steady
from testbed import BUILD, Testbed

WORKER = "rte-worker"
# Connections and requests of each that keep a worker busy: of fewer connections all that is in flight would
# go round in one heap, and whoever does not have it waits.
FULL = (512, 1)
FEW, MANY = "few.test", "all.test"  # authorities: with one route, and with all there are
LARGE_MTU = 9000
PART_S = 0.6  # of a load without many routes, and then of one with them
LOOK_S = 0.05  # between two looks at a worker
STEADY_S = 2.0  # at least, of a load whose connections are not counted
SLOW_CHURN = 1000  # connections a second: about as many as a thread makes handshakes


class ShuntOnVeth(OnVeth):
    name = "shunt"
    is_peer = False
    offloads = "off"  # an AF_PACKET socket sees checksums that nobody made

    @staticmethod
    def version():
        return said([BUILD / "ctrl" / "shuntd", "--version"], "shuntd ")

    def start(self):
        tls = self.credentials.of_shunt(self.bed, self.way) if self.credentials else {}
        load_agent.serve_echo(self.bed, (BACKEND, BACKEND_PORT), routes_of_echo(self.n_routes), **tls)
        prefer(self.bed.daemon.pid, WORKER)
        return self.bed.daemon


class ShuntOnMemif(Subject):
    name = "shunt"
    transport = "memif"
    mtu = 1500
    is_peer = False
    version = ShuntOnVeth.version

    def build(self):
        self.bed = PollingBed(self.lab, self.mtu)
        tls = self.credentials.of_shunt(self.bed, self.way) if self.credentials else {}
        load_agent.serve_echo(self.bed, routes=routes_of_echo(self.n_routes), without_routes=[FEW], **tls)
        prefer(self.bed.daemon.pid, WORKER)

    def pid(self):
        return self.bed.daemon.pid

    def _state(self):
        workers = self.bed.show_workers()
        return (cpu_s(self.bed.daemon.pid, WORKER), sum(w["busy_s"] for w in workers),
                sum(w["idle_s"] for w in workers), sum(w["requests"] for w in workers))

    def requests(self):
        """That the daemon has had."""
        return self._state()[3]

    def _shunt_load(self, *words):
        words = [*words, *(["--tls"] if self.way.front else []), *(["--http1"] if self.way.http1 else [])]
        if self.way.back:
            words += ["--echo-certificate", self.credentials.path("back.pem"),
                      "--echo-key", self.credentials.path("back.key")]
        return load_agent.argv("run", *load_agent.memif_words(self.lab), "--check", "same", "-p",
                               path(self.n_routes), "--mtu", str(self.mtu), *map(str, words), core=cores()[1])

    def _run(self, *words, priority=first):
        before = self._state()
        report = report_of(self.lab.exec("lb", priority(*self._shunt_load(*words)), timeout=RUN_TIMEOUT_S, check=False))
        cpu, busy, idle, requests = (b - a for a, b in zip(before, self._state()))
        load = report["busy"]
        return Sample(requests, cpu * busy / (busy + idle), 0.0, report["per_second"],
                      report["failed"], busy=load["client"] + load["echo"], latency=report["latency_ns"],
                      why=why_of(report))

    def start_shunt_load(self, *words):
        """Each load has a backend of its own. If the one before went while the daemon was off its core, the daemon
        learns so from its probe."""
        return self.lab.start("lb", "idle", self._shunt_load(*words))

    def measure(self, clients, streams, seconds, *words):
        return self._run("-c", clients, "-m", streams, "-D", seconds, *words)

    def measure_steady(self, clients, streams, seconds):
        return self._watched("-c", clients, "-m", streams, "-D", max(STEADY_S, seconds), of=steady)

    def measure_bodies(self, way, clients, streams, seconds):
        sizes = ["-A", BODY] if way == "GET" else ["-b", BODY, "-A", ANSWER]
        return self.measure(clients, streams, max(1.0, seconds), "--check", "content", *sizes)

    def routes_figures(self, seconds):
        """What many add is less than two processes differ by: one has both, and they take turns."""
        for shape, size in SHAPES.items():
            of = {FEW: [], MANY: []}
            for _ in range(max(1, round(seconds / PART_S))):
                for authority, took in of.items():
                    took.append(self.seen(self.measure(*size, PART_S, "--authority", authority)).subject_us())
            yield cpu_per_request(shape, self.n_routes), "us", statistics.median(of[MANY])
            added = statistics.median(many - few for few, many in zip(*of.values()))
            yield cpu_added(shape, self.n_routes), "us", added

    def _run_beside_others(self, *words):
        """Nobody goes before others on its core: who does so and polls is held off it for 50 ms of each second, and
        whoever has to share it, as handshake threads do, gets no more than these."""
        prefer(self.bed.daemon.pid, WORKER, wanted=False)
        sample = self._run(*words, priority=together)
        prefer(self.bed.daemon.pid, WORKER)
        return sample

    def latency(self, seconds, rate=None):
        return self._run_beside_others(*latency_words(seconds, rate))

    def churn(self, seconds):
        words = ["-c", CHURN, "--requests-per-connection", 1]
        if self.way.front:  # shunt-load makes its handshakes itself: in a short time there might be none
            return self._watched(*words, "-n", round(CHURN + 600 * seconds), "-T", 60)
        return self._run(*words, "-D", seconds)

    def _watched(self, *words, of=lambda looks: looks):
        """A load while which somebody looks at the worker often; of: which looks count. It has no priority: those who
        look share its core, and with TLS the threads that make our handshakes."""
        process = self.lab.start("lb", f"watched-{len(self.lab.processes)}", self._shunt_load(*words))
        looks = [self._look()]
        while process.alive():
            time.sleep(LOOK_S)
            looks.append(self._look())
        process.wait(RUN_TIMEOUT_S)
        report = json.loads(process.output().splitlines()[-1])
        busy_s, counted = spent(of(looks))
        return Sample(looks[-1].requests - looks[0].requests, busy_s, 0.0, report["per_second"], report["failed"],
                      counted=counted, why=why_of(report))

    def _look(self):
        workers = self.bed.show_workers()
        return Look(*(sum(w[what] for w in workers) for what in Look._fields))

    def churn_figures(self, seconds):
        """With TLS all threads count, but it is the worker's part that requests wait for."""
        before = cpu_s(self.pid(), but=WORKER)
        sample = self.seen(self.churn(seconds))
        others_s = cpu_s(self.pid(), but=WORKER) - before
        part_us = all_us = sample.subject_us(CHURN)
        if self.way.front and part_us is not None:
            all_us = part_us + others_s / sample.requests * 1e6
        yield CHURN_FIGURE, "us", all_us
        if self.way.front:
            yield PART_FIGURE, "us", part_us

    def way_figures(self, seconds):
        """In clear text also connections that come as seldom as those with TLS: a worker that has nothing else to do
        takes one frame a turn, which costs more than TLS does."""
        yield from super().way_figures(seconds)
        if self.way is compare_ways.CLEAR:
            sample = self.seen(self._watched("-c", CHURN, "--requests-per-connection", 1, "-r", SLOW_CHURN,
                                             "-n", round(CHURN + SLOW_CHURN * seconds), "-T", 60))
            yield compare_ways.named(PART_FIGURE, self.way), "us", sample.subject_us(CHURN)

    def more_figures(self, seconds):
        """What the busy share says at half of the highest rate, and what the highest rate was."""
        most = self.seen(self.measure(*FULL, seconds))
        half = self.seen(self._run("-c", FULL[0], "-m", FULL[1], "-r", round(most.per_second / 2), "-D", seconds))
        yield "requests per second, saturated 512x1", "1/s", most.per_second
        yield "busy share of the worker, saturated 512x1", "%", most.subject_us() * most.per_second / 1e4
        yield "generator's busy share, saturated 512x1", "%", 100 * most.busy
        yield "requests per second by the busy share at half of that", "1/s", 1e6 / half.subject_us()
        yield "busy share / saturation", "", 1e6 / half.subject_us() / most.per_second


class LargeFramesOnVeth(ShuntOnVeth):
    """Large bodies, with frames of up to 9000 bytes. The kernel's sockets take 64 KiB through a veth at once, whatever
    its MTU."""

    transport = "veth, MTU 9000"
    routes = False
    mtu = LARGE_MTU

    def figures(self, seconds, rate):
        yield from self.body_figures(seconds)


class LargeFramesOnMemif(ShuntOnMemif):
    """The same on memif."""

    transport = "memif, MTU 9000"
    routes = False
    mtu = LARGE_MTU

    def figures(self, seconds, rate):
        yield from self.body_figures(seconds)


class PollingBed(Testbed):
    """memif, a worker that never sleeps."""

    def __init__(self, lab, mtu):
        super().__init__(lab, device="memif", mtu=mtu)

    def config_text(self):
        text = super().config_text().replace("idle: backoff", "idle: poll")
        return text.replace("workers: [1]", f"workers: [{cores()[0]}]")


def together(*argv):
    """With the others on its core, as first() is before them."""
    return argv


def routes_of_echo(n_routes):
    return [resources.route(p, "echo") for p in prefixes(n_routes)]
