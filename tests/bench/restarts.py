# SPDX-License-Identifier: Apache-2.0
"""Proxies that are replaced three times under load: shuntd that is taken over, HAProxy that is reloaded, Envoy that is
restarted hot. Prints what became of calls, connections and streams; a stream is opened before the first and ended
behind the last (docs/takeover.md). Root; some minutes.

usage: .venv/bin/python tests/bench/restarts.py [NAME...]
"""

import json
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integ"))
# pylint: disable=wrong-import-position
import envoy_proxy
import haproxy
import resources
from lab import Lab, wait_until
from testbed import PORT, VIP
from world import RPC_PATH, RPC_PORT, World

LABEL = "shunt-restarts"
RESTARTS, PAUSE_S = 3, 10
LIMIT_S, SHORT_S = 60, 12  # how long an old process may live
WAIT_S = 30


class Subject:
    """Between one gRPC server and restart_calls.py; start() the first process, replace() it."""

    def __init__(self, lab):
        self.lab = lab
        self.world = World(lab)
        self.bed = self.world.bed
        self.backend = (self.world.rpc_address(1), RPC_PORT)

    def kernel_network(self):
        """The addresses that shuntd has by itself are the kernel's."""
        self.lab.address("lb", "lb-c", f"{VIP}/24")
        self.lab.address("lb", "lb-b", "10.82.255.254/16")


class Shunt(Subject):
    """With drain_s of LIMIT_S."""

    def start(self):
        self.bed.settings = f"takeover_socket: {self.lab.dir}/takeover.sock\ndrain_s: {LIMIT_S}\n"
        self.world.start()

    def replace(self, number):
        self.bed.start_daemon(wait=False, words=["--takeover"], name=f"shuntd-{number}")
        wait_until(lambda: self.bed.show("info")["pid"] == self.bed.daemon.pid, WAIT_S, "the newer process")


class HAProxy(Subject):
    """As it comes: old workers stay until their last connection has gone."""

    more = ""

    def start(self):
        self.kernel_network()
        config = self.lab.dir / "haproxy.cfg"
        text = haproxy.configuration(VIP, PORT, self.backend)
        config.write_text(text.replace("global\n", f"global\n  stats socket {self.lab.dir}/haproxy.sock "
                                       f"expose-fd listeners level admin\n{self.more}"))
        self.process = self.lab.start("lb", "haproxy", ["haproxy", "-W", "-f", config], cpu=None, files=16384)
        self.bed.wait_connect("client", VIP, PORT, self.process)

    def replace(self, number):
        loaded = self.process.output().count("Loading success")
        self.process.signal(signal.SIGUSR2)
        wait_until(lambda: self.process.output().count("Loading success") > loaded, WAIT_S, f"reload {number}")


class HAProxyHardStop(HAProxy):
    """As operators bound that."""

    more = f"  hard-stop-after {LIMIT_S}s\n"


class HAProxyShortStop(HAProxy):
    """The same, to have few processes at a time."""

    more = f"  hard-stop-after {SHORT_S}s\n"


class Envoy(Subject):
    """As it comes: ten minutes to drain, fifteen for the old process to end."""

    times = ()
    base_id = 4711

    def start(self):
        self.kernel_network()
        routes = resources.route_config("routes", resources.virtual_host(
            "all", ["*"], resources.route(RPC_PATH, "back")))
        config = envoy_proxy.configuration(routes, {"back": [self.backend]}, [])
        config["static_resources"]["listeners"][0]["address"] = envoy_proxy.address_of(VIP, PORT)
        self.path = self.lab.dir / "envoy.json"
        self.path.write_text(json.dumps(config))
        self._run(0)
        self.bed.wait_connect("client", VIP, PORT, self.process)

    def _run(self, epoch):
        self.process = self.lab.start("lb", f"envoy-{epoch}", [
            envoy_proxy.BINARY, "-c", self.path, "-l", "info", "--concurrency", "1", "--base-id", str(self.base_id),
            "--restart-epoch", str(epoch), *map(str, self.times)], cpu=None)

    def replace(self, number):
        self._run(number - 1)
        wait_until(lambda: "starting main dispatch loop" in self.process.output() or not self.process.alive(), WAIT_S,
                   "the newer process")
        if not self.process.alive():
            print(f"envoy {number} ended: {self.process.output()[-300:]}", file=sys.stderr)


class EnvoyLimited(Envoy):
    """As long as the others have."""

    times = ("--drain-time-s", LIMIT_S - 10, "--parent-shutdown-time-s", LIMIT_S)


class EnvoyShort(Envoy):
    """So that each restart finds one old process at most."""

    times = ("--drain-time-s", PAUSE_S - 4, "--parent-shutdown-time-s", PAUSE_S - 2)


SUBJECTS = {
    f"shuntd --takeover, drain_s {LIMIT_S}": Shunt,
    "HAProxy, reload": HAProxy,
    f"HAProxy, reload, hard-stop-after {LIMIT_S}s": HAProxyHardStop,
    f"HAProxy, reload, hard-stop-after {SHORT_S}s": HAProxyShortStop,
    "Envoy, hot restart, 600 s and 900 s": Envoy,
    f"Envoy, hot restart, {LIMIT_S - 10} s and {LIMIT_S} s": EnvoyLimited,
    f"Envoy, hot restart, {PAUSE_S - 4} s and {PAUSE_S - 2} s": EnvoyShort,
}


def resets(lab):
    """Connections of the client that a reset has ended so far."""
    return lab.tcp_counters("client")["EstabResets"]


def run(kind):
    with Lab(LABEL) as lab:
        subject = kind(lab)
        subject.start()
        stop_streams, stop_calls = lab.dir / "stop-streams", lab.dir / "stop-calls"
        before = resets(lab)
        calls = lab.start("client", "calls", [sys.executable, pathlib.Path(__file__).with_name("restart_calls.py"),
                                              f"{VIP}:{PORT}", stop_streams, stop_calls])
        wait_until(lambda: "ready" in calls.output() or not calls.alive(), WAIT_S, "streams")
        for number in range(2, RESTARTS + 2):
            subject.replace(number)
            time.sleep(PAUSE_S)
        stop_streams.touch()
        time.sleep(1)
        stop_calls.touch()
        assert calls.wait(WAIT_S) == 0, calls.output()
        return {**json.loads(calls.output().splitlines()[-1]), "reset": resets(lab) - before}


def main():
    wanted = sys.argv[1:] or SUBJECTS
    print("| | calls | failed | longest | connections reset | streams cut |")
    print("|---|---|---|---|---|---|")
    for name, kind in SUBJECTS.items():
        if not any(word in name for word in wanted):
            continue
        told = run(kind)
        print(f"| {name} | {told['calls']:,} | {told['failed']} | {told['longest_ms']} ms | {told['reset']} | "
              f"{told['cut']} of {told['streams']} |", flush=True)
        for why, n in told["why"].items():
            print(f"{name}: {n} times {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
