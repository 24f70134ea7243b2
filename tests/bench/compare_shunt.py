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
from compare_bed import (ANSWER, BACKEND, BACKEND_PORT, BODY, CHURN, CHURN_FIGURE, ENOUGH, PART_FIGURE,
                         RUN_TIMEOUT_S, SHAPES, OnVeth, Subject, cores, cpu_added, cpu_per_request, cpu_s, first,
                         latency_words, path, prefer, prefixes, report_of, said, shapes_of, why_of)
from compare_sample import Look, Sample, spent, steady
from testbed import BUILD, Testbed, VIP

WORKER = "rte-worker"
# Connections and requests of each that keep a worker busy: of fewer connections all that is in flight would
# go round in one heap, and whoever does not have it waits.
FULL = (512, 1)
TLS_PORT, SECURE = 8443, "tls.test"  # of what speaks TLS where clear text is served, too
FEW, MANY = "few.test", "all.test"  # authorities: with one route, and with all there are
LARGE_MTU = 9000
PART_S = 0.6  # of a load without many routes, and then of one with them
LOOK_S = 0.05  # between two looks at a worker
TURN_S = 1.0  # of a load in one way, and then of one in another
PAIRS = 1.5  # of turns, forth and back, for each second that other loads last
SLOW_CHURN = 1000  # connections a second: about as many as a thread makes handshakes


class ShuntOnVeth(OnVeth):
    name = "shunt"
    is_peer = False
    offloads = "off"  # an AF_PACKET socket sees checksums that nobody made

    @staticmethod
    def version():
        return said([BUILD / "ctrl" / "shuntd", "--version"], "shuntd ")

    def start(self):
        tls = tls_of(self)
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
        self.serve()
        prefer(self.bed.daemon.pid, WORKER)

    def serve(self):
        load_agent.serve_echo(self.bed, routes=routes_of_echo(self.n_routes), without_routes=[FEW], **tls_of(self))

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
        return self._watched("-c", clients, "-m", streams, "-D", seconds, of=steady)

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
        """Of all threads: with TLS those that make handshakes are most of it."""
        before = cpu_s(self.pid(), but=WORKER)
        sample = self.seen(self.churn(seconds))
        us = sample.subject_us(CHURN)
        if self.way.front and us is not None:
            us += (cpu_s(self.pid(), but=WORKER) - before) / sample.requests * 1e6
        yield CHURN_FIGURE, "us", us

    @classmethod
    def of_ways(cls):
        return [cls(), cls(way=compare_ways.TLS), ShuntInTurns()]

    def way_figures(self, seconds):
        """Of connections alone: what a way adds to requests is less than two processes differ by (ShuntInTurns).
        Requests come first: their frames and chunks are there then."""
        for size in SHAPES.values():
            self.seen(self.measure_steady(*size, seconds))
        yield from self.way_connections(seconds)

    def more_figures(self, seconds):
        """What the busy share says at half of the highest rate, and what the highest rate was."""
        most = self.seen(self.measure(*FULL, seconds))
        half = self.seen(self._run("-c", FULL[0], "-m", FULL[1], "-r", round(most.per_second / 2), "-D", seconds))
        yield "requests per second, saturated 512x1", "1/s", most.per_second
        yield "busy share of the worker, saturated 512x1", "%", most.subject_us() * most.per_second / 1e4
        yield "generator's busy share, saturated 512x1", "%", 100 * most.busy
        yield "requests per second by the busy share at half of that", "1/s", 1e6 / half.subject_us()
        yield "busy share / saturation", "", 1e6 / half.subject_us() / most.per_second


class ShuntInTurns(ShuntOnMemif):
    """One that serves all ways of speaking, which take turns at it, back and forth: a machine whose speed changes by
    the second does so for all of them."""

    def __init__(self):
        super().__init__(way=compare_ways.TLS_BOTH)  # of what it needs; then of the load whose turn it is
        self.rate = SLOW_CHURN  # connections a second, of TLS when it was last its turn

    def serve(self):
        tls = self.credentials.of_shunt(self.way)
        entry = f"name: tls, address: {VIP}, port: {TLS_PORT}, target: web, {compare_ways.FRONT}"
        self.bed.more_frontends = [f"{{{entry}}}"]
        secure = (SECURE, (load_agent.BACKEND, TLS_PORT), {"transport_socket": tls["transport_socket"]})
        load_agent.serve_echo(self.bed, without_routes=[FEW], others=[secure], env=tls["env"])

    def _shunt_load(self, *words):
        of_front = ["-t", f"{VIP}:{TLS_PORT}"] if self.way.front else []
        of_back = ["--listen", TLS_PORT, "--authority", SECURE] if self.way.back else ["--authority", FEW]
        return super()._shunt_load(*of_front, *of_back, *words)

    def way_figures(self, seconds):
        for shape, size in SHAPES.items():
            ways = [way for way in compare_ways.WAYS if shape in shapes_of(way)]
            yield from turns_figures(cpu_per_request(shape), self._turns(seconds, ways, self._request_us, *size))
        ways = [compare_ways.TLS, compare_ways.CLEAR]
        yield from turns_figures(PART_FIGURE, self._turns(seconds, ways, self._connection_us))

    def _turns(self, seconds, ways, measure, *words):
        """{way: [what measure() has of each turn]}, as often forth as back; the first load of all is forgotten."""
        took = {way: [] for way in ways}
        self._in_way(ways[0], measure, *words)
        for _ in range(max(1, round(PAIRS * seconds))):
            for way in [*ways, *ways[::-1]]:
                took[way].append(self._in_way(way, measure, *words))
        return took

    def _in_way(self, way, measure, *words):
        self.way = way
        return measure(*words)

    def _request_us(self, *size):
        return self.seen(self.measure_steady(*size, TURN_S)).subject_us(ENOUGH)

    def _connection_us(self):
        """The worker's part, for which requests wait; in clear text of connections that come as seldom as those with
        TLS: a worker that has nothing else to do takes one frame a turn, which costs more than TLS does."""
        rate = [] if self.way.front else ["-r", self.rate]
        sample = self.seen(self._watched("-c", CHURN, "--requests-per-connection", 1, *rate, "-T", 60,
                                         "-n", round(CHURN + SLOW_CHURN * TURN_S)))
        if self.way.front:
            self.rate = max(1, round(sample.per_second))
        return sample.subject_us(CHURN)


def turns_figures(what, took):
    """What each way cost, and what it added to clear text of the same turn: medians. took: {way: [us of a turn, or
    None]}."""
    def median(values):
        told = [value for value in values if value is not None]
        return statistics.median(told) if told else None
    clear = took[compare_ways.CLEAR]
    for way, values in took.items():
        yield compare_ways.named(what, way), "us", median(values)
        if way is not compare_ways.CLEAR:
            pairs = zip(values, clear)
            yield compare_ways.added(what, way), "us", median(v - c if None not in (v, c) else None for v, c in pairs)


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


def tls_of(subject):
    """Arguments of load_agent.serve_echo(); sets what its bed's frontend has."""
    way = subject.way
    if not subject.credentials:
        return {}
    if way.front:
        subject.bed.frontend_settings = compare_ways.FRONT
    return subject.credentials.of_shunt(way)


def routes_of_echo(n_routes):
    return [resources.route(p, "echo") for p in prefixes(n_routes)]
