# SPDX-License-Identifier: Apache-2.0
"""Where tests/bench/floods.py measures: the attacks' world with TLS, whose victim is a shunt-load, and beside it

    attackers 10.66.0.0/16 -- 10.81.0.10:8080 nghttpd

in two namespaces of their own, for what an attack costs the machine alone."""

import collections
import os
import sys
import time
import types

import judge
import load_agent
from attack_world import ATTACKERS, GATEWAY, Ground
from compare_bed import cores, tasks, why_of
from compare_shunt import WORKER
from lab import LabError, SUPPORT_CPU, wait_until
from testbed import PORT, VIP

STREAMS = 4
WARM_UP_S = 1.5  # until an attack is what it is to be
MOST = 0.6  # of what the other core can ask for: attackers need room there
LOOK_S = 0.25
NOTHING = {"units": 0, "seconds": 1}  # of an attack
# attack_rate: units a second; busy: share of the worker's time; pools: bytes held at most; grown: of the process.
Sample = collections.namedtuple("Sample", "p50_us p99_us failed why busy attack_rate pools grown")


class FloodsWorld(Ground):
    least = 1  # units of an attack, for which a slow machine gets more time
    connections = 64
    timeout_s = 5  # of a request; so much longer may a load last
    patience_s = 20  # with all that has no time of its own
    nice_first, nice_victim, nice_attacker = -20, -15, 19  # the first: the worker and the backend

    def __init__(self, lab):
        if SUPPORT_CPU not in cores():
            raise LabError(f"core {SUPPORT_CPU} is needed")
        self.n_loads = 0
        super().__init__(lab, "tls", "short")  # there is no victim to watch

    def start_victim(self):
        """Of which there is one for each load; but whom attacks reach elsewhere. Its backend goes before it on their
        core: it polls while requests are due. Nobody is real-time: who is and works most of the time is held off its
        core for 50 ms of each second, which would be all that a p99 tells."""
        web = next(process for process in self.lab.processes if process.name == "web")
        for task in (*tasks(self.pid, WORKER), *tasks(web.pid)):
            os.setpriority(os.PRIO_PROCESS, int(task.name), self.nice_first)
        self.lab.share(web.pid, self.nice_first)  # not the daemon, whose other threads are behind these
        self.lab.link(("elsewhere", "e0"), ("sink", "e1"))
        self.lab.address("elsewhere", "e0", f"{GATEWAY}/24")
        self.lab.address("sink", "e1", f"{VIP}/24")
        self.lab.ip("elsewhere", "route", "add", "local", ATTACKERS, "dev", "lo")
        self.lab.ip("sink", "route", "add", ATTACKERS, "via", GATEWAY)
        sink = self.lab.start("sink", "sink", [
            "nghttpd", "-a", VIP, "-d", self.lab.dir / "www-web", PORT,
            *(self.pki.folder / f"front.{end}" for end in ("key", "pem"))], files=16384)
        self.bed.wait_connect("elsewhere", VIP, PORT, sink)

    def victim_ports(self):
        return []

    def highest(self, seconds):
        """The highest rate, half of which is `half`. Two cores are not enough to load one of them fully if every
        request passes two kernels on the other: what the worker could do follows from its busy share."""
        sample, per_second = self._load(["-D", max(1.0, seconds), "-w", WARM_UP_S], None)
        if not per_second:
            raise LabError(f"no request was answered: {sample.why or 'no connection came about'}")
        by_busy = per_second / min(1.0, sample.busy)
        return {"asked": round(per_second), "busy": round(sample.busy, 3), "highest": round(by_busy),
                "half": max(1, round(min(by_busy / 2, per_second * MOST))), "failed": sample.failed, "why": sample.why}

    def load(self, rate, seconds, flood=None, elsewhere=False):
        """A Sample of so many requests a second, beside a flood (of floods.py) of the daemon, or of somebody else."""
        attack = flood and {"a_row": types.SimpleNamespace(topic=flood[0], name=flood[1]),
                            "seconds": WARM_UP_S + seconds, "ns": "elsewhere" if elsewhere else "client"}
        return self._load(["-r", rate, "-D", seconds, "-w", WARM_UP_S], attack)[0]

    def _load(self, words, attack):
        """(Sample, answers a second)"""
        self.n_loads += 1
        pools, resident, asked = self._pools(), self.resident(), self.counters()["requests"]
        load = self.lab.start("client", f"load-{self.n_loads}", load_agent.argv(
            "run", *load_agent.client_words(), "--tls", "--nap", "--check", "same", "-p", "/mark", "-c",
            self.connections, "-m", STREAMS, "-T", self.timeout_s, *words), nice=self.nice_victim)
        wait_until(lambda: self.counters()["requests"] > asked or not load.alive(), self.patience_s, "first requests")
        attacker = attack and self.attack(f"attack-{self.n_loads}", again=True, least=self.least,
                                          nice=self.nice_attacker, **attack)
        looks, grown = [self.counters()], 0
        while load.alive():
            pools, grown = max(pools, self._pools()), max(grown, self.resident() - resident)
            time.sleep(LOOK_S)
            looks.append(self.counters())
        report = judge.report_of(load)
        attacked = self._ended(attacker) if attacker else NOTHING
        wait_until(lambda: not self.counters()["proxy.clients"], self.patience_s, "the last client's end")
        latency = report["latency_ns"]
        return Sample(latency["p50"] / 1e3, latency["p99"] / 1e3, report["failed"],
                      why_of(report) if report["failed"] else {},
                      busy_share(looks), attacked["units"] / attacked["seconds"],
                      pools, grown), report["per_second"]

    def _ended(self, attacker):
        """Its report."""
        try:
            attacker.wait(self.patience_s)
        except TimeoutError as e:
            print(f"{e}, for want of a core: nothing is known of it", file=sys.stderr, flush=True)
            attacker.kill()
            return NOTHING
        return judge.report_of(attacker)

    def _pools(self):
        """Bytes in use."""
        return sum(used * size for pool, (used, size, _) in self.used().items() if not pool.startswith(judge.NOT_HELD))


def busy_share(looks):
    """Of a worker's time, between counters; without the beginning, and the end, where the load may be gone."""
    inner = looks[len(looks) // 3:-1] if len(looks) > 4 else looks
    busy, idle = (inner[-1][what] - inner[0][what] for what in ("busy_s", "idle_s"))
    return busy / max(1e-9, busy + idle)
