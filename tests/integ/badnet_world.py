# SPDX-License-Identifier: Apache-2.0
"""Where the cells of badnet_table.py are run: shuntd, or HAProxy on the kernel's TCP with CUBIC, between a client and a
backend with the same kernel's, and a faultlink on either side."""

import dataclasses
import ipaddress
import json
import math
import sys
import time

import haproxy
import load_agent
from badnet_table import SIDES
from faultlink import Faultlink
from testbed import HERE, PORT, VIP, VIP6, WORKERS, Testbed

CONGESTION = "cubic"
AGENT = [sys.executable, HERE / "transfer_agent.py"]
VIPS = {4: VIP, 6: VIP6}
BACKENDS = {4: ("10.82.0.1", 8080), 6: ("fd82::1", 8080)}
# (namespace, interface, addresses) of what is a kernel's; those in `lb` are shuntd's without HAProxy.
ENDS = [("client", "c0", {4: "10.81.0.1/24", 6: "fd81::1/64"}),
        ("backends", "b0", {4: "10.82.0.1/16", 6: "fd82::1/64"})]
BALANCER_ENDS = [("lb", "lb-c", {4: f"{VIP}/24", 6: f"{VIP6}/64"}),
                 ("lb", "lb-b", {4: "10.82.255.254/16", 6: "fd82::fe/64"})]
FILES = 16384  # descriptors
# What connections to the backend begin with is over then: between two links all is lost.
QUIET_S = 0.5
QUIET_ROUND_TRIPS = 4
SLACK_S = 30  # of a transfer's limit, for its process


@dataclasses.dataclass
class Result:
    """Of a cell. goodput in Mbit/s, of the bodies that arrived whole."""

    goodput: float
    failed: list
    altered: int
    counters: dict  # of the faultlink
    p50_ms: float = 0.0  # from a request's first byte to its answer's last one, of those that had one
    p99_ms: float = 0.0

    @property
    def good(self):
        return not self.failed and not self.altered


def start_shunt(bed, family):
    load_agent.serve_echo(bed, BACKENDS[family])


def start_haproxy(bed, family):
    for ns, interface, addresses in BALANCER_ENDS:
        if family == 6:
            bed.lab.enable_ip6(ns, interface)
        nodad = ["nodad"] if family == 6 else []
        bed.lab.ip(ns, "addr", "add", addresses[family], "dev", interface, *nodad)
        use_congestion_control(bed.lab, ns, interface, addresses[family])
    path = bed.lab.dir / "haproxy.cfg"
    polls = bed.idle == "poll"  # then it has a core, too, and as little is left to the others
    path.write_text(haproxy.configuration(VIPS[family], PORT, BACKENDS[family], polls=polls))
    process = bed.lab.start("lb", "haproxy", ["haproxy", "-db", "-f", path], cpu=WORKERS[0] if polls else None,
                            files=FILES)
    bed.wait_connect("client", VIPS[family], PORT, process)


SUBJECTS = {"shunt": start_shunt, "haproxy": start_haproxy}


def quantile_ms(latencies, share):
    """As many as this share took at most so long."""
    ordered = sorted(latencies)
    return 1000 * ordered[max(math.ceil(share * len(ordered)), 1) - 1] if ordered else 0.0


def use_congestion_control(lab, ns, interface, address):
    """By the route, as a namespace may not choose one for all. What a kernel learned of a path it forgets with the
    connection, so that no cell knows of the one before."""
    own = ipaddress.ip_interface(address)
    where = ["scope", "link", "src", str(own.ip)] if own.version == 4 else ["metric", "256"]
    lab.ip(ns, f"-{own.version}", "route", "change", str(own.network), "dev", interface, "proto", "kernel", *where,
           "congctl", CONGESTION)
    lab.exec(ns, ["sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"])


class Bed:
    """One subject that serves, ready for cells of this family: client and backend have no other. Who knows the cell
    tells it: a connection to the backend that is there before the first request then begins on the cell's path. On a
    path that has become a thousand times longer since, a kernel leaves slow start with its first flight, and RACK takes
    what is late for lost. idle: of shunt.yaml; a worker that backs off wakes as late as the kernel wakes a process,
    which is much of the shortest round trips."""

    def __init__(self, lab, subject, family, cell=None, idle="backoff"):
        self.lab = lab
        self.vip = VIPS[family]
        self.bed = Testbed(lab, faultlinks=tuple(SIDES.values()), ip6=family == 6)
        self.bed.idle = idle
        self.bed.connect_s = math.ceil(1 + 2e-3 * cell.condition.rtt_ms) if cell else 1
        for ns, interface, addresses in ENDS:
            use_congestion_control(lab, ns, interface, addresses[family])
        backend = lab.start("backends", "backend", [*AGENT, "serve", *map(str, BACKENDS[family])])
        self.bed.wait_connect("backends", *BACKENDS[family], backend)
        paths = {cell.side: cell.path} if cell else {}
        with self.link("client", both=paths.get("client", "")), self.link("backend", both=paths.get("backend", "")):
            SUBJECTS[subject](self.bed, family)
            time.sleep(QUIET_S + (QUIET_ROUND_TRIPS * 1e-3 * cell.condition.rtt_ms if cell else 0))

    def link(self, side, **faults):
        return Faultlink(self.lab, self.bed.middle_of(SIDES[side]), **faults)

    def run(self, cell, seed):
        """The other side of the balancer is a plain wire meanwhile."""
        other, = set(SIDES) - {cell.side}
        c = cell.condition
        words = [cell.way, self.vip, PORT, c.length // (cell.connections * c.requests), cell.connections, c.requests,
                 c.limit_s]
        with self.link(other), self.link(cell.side, seed=seed, **cell.faults()) as link:
            done = self.lab.exec("client", [*AGENT, *map(str, words)], timeout=c.limit_s + SLACK_S)
        report = json.loads(done.stdout)
        took = report["latencies"]
        return Result(8e-6 * report["bytes"] / report["seconds"], report["failed"], report["altered"], link.counters,
                      quantile_ms(took, 0.5), quantile_ms(took, 0.99))
