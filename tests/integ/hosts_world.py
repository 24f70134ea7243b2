# SPDX-License-Identifier: Apache-2.0
"""Hosts with Shunt on one wire with the same clients and backends, which have one xDS server that takes their load
reports, too. Whoever calls chooses the host; test_fleet.py has routers for that.

    client 10.80.0.1, backends 10.80.1.x, port of host N 10.80.2.N      one bridge
    xds 10.70.N.1 -- 10.70.N.2 host N                                   its control plane's way
"""

import collections
import json

import resources
from agent import Agent
from lab import command, wait_until
from testbed import BUILD, EXIT_TIMEOUT_S, START_TIMEOUT_S

PORT, RPC_PORT = 8080, 9090
UPSTREAM = "127.0.0.1:18001"
KINDS = ("issued", "ok", "error")

CONFIG = """\
eal: [--in-memory, --no-huge, -m, "256"]
workers: [{core}]
idle: backoff
limits: {{connections: 1024, buffers_mib: 16}}
ports: [{{device: "net_af_packet0,iface=p0", addresses: [{ip}/16]}}]
frontends: [{{name: web, address: {ip}, port: {port}, target: web}}]
stats: {{socket: {socket}, mode: "0660"}}
drain_s: 10
"""


def backend(n):
    return f"10.80.1.{n}"


def zone(n):
    return f"lab/zone-{n}/"


def cluster(name, **more):
    return {**resources.cluster(name), "lrs_server": {"resource_api_version": "V3", "self": {}}, **more}


def endpoints(name, *numbers, **more):
    """Each backend is a locality, so that reports tell of each."""
    made = resources.endpoints(name)
    made["endpoints"] = [
        {"locality": {"region": "lab", "zone": f"zone-{n}"}, "load_balancing_weight": 1,
         "lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": backend(n),
                                                                       "port_value": RPC_PORT}}}}]}
        for n in numbers]
    return {**made, **more}


class Tally(collections.Counter):
    """(zone, kind): requests, of one cluster; drops are (None, "dropped")."""

    def add_answers(self, answers):
        for answer in answers:
            if answer["backend"] is None:
                self[None, "dropped"] += 1
                continue
            for kind in ("issued", "ok" if answer["code"] == "OK" else "error"):
                self[zone(answer["backend"]), kind] += 1
        return self

    def add_reports(self, name, reports):
        for one in (report[name] for report in reports if name in report):
            for where, counts in one["localities"].items():
                self.update({(where, kind): counts[kind] for kind in KINDS if counts[kind]})
            if one["dropped"]:
                self[None, "dropped"] += one["dropped"]
        return self

    def issued(self):
        return {where: n for (where, kind), n in self.items() if kind == "issued"}


class Host:
    def __init__(self, world, n):
        self.world, self.lab, self.n, self.ns, self.id = world, world.lab, n, f"host{n}", f"host-{n}"
        self.ip = f"10.80.2.{n}"
        self.runs, self.daemon = 0, None
        self.lab.link((self.ns, "p0"), ("wire", f"h{n}"))
        self.lab.link((self.ns, "m0"), ("xds", f"m{n}"))
        self.lab.address(self.ns, "m0", f"10.70.{n}.2/24")
        self.lab.address("xds", f"m{n}", f"10.70.{n}.1/24")
        self.socket = self.lab.dir / f"stats-{n}.sock"
        self.bootstrap = self.lab.dir / f"bootstrap-{n}.json"
        self.bootstrap.write_text(json.dumps({
            "xds_servers": [{"server_uri": f"10.70.{n}.1:18000", "channel_creds": [{"type": "insecure"}]}],
            "node": {"id": self.id}}))
        self.calls = Agent(self.lab, "client", f"calls-{n}", "grpc_agent.py")

    def start(self):
        path = self.lab.dir / f"shunt-{self.n}.yaml"
        path.write_text(CONFIG.format(core=self.n % 2, ip=self.ip, port=PORT, socket=self.socket))
        self.runs += 1
        self.daemon = self.lab.start(self.ns, f"shuntd-{self.n}-{self.runs}", [BUILD / "ctrl" / "shuntd", "-c", path],
                                     env={"GRPC_XDS_BOOTSTRAP": str(self.bootstrap)}, cpu=None)

    def wait_ready(self, name):
        """Until it serves, and the client's old connection is replaced; name: a cluster that may be asked for that."""
        wait_until(lambda: self.shuntctl("show", "info", check=False) and self.show("info")["state"] == "ready",
                   START_TIMEOUT_S, f"host {self.n} ready")
        wait_until(lambda: self.call(name, 1)[0]["code"] == "OK", START_TIMEOUT_S, f"an answer through host {self.n}")

    def stop(self):
        assert self.daemon.stop(EXIT_TIMEOUT_S) == 0, self.daemon.output()
        return self.daemon.output()

    def shuntctl(self, *words, check=True):
        return command([BUILD / "tools" / "shuntctl", "--socket", self.socket, "--json", *words], check=check).stdout

    def show(self, what):
        return json.loads(self.shuntctl("show", what))["data"]

    def begin(self, name, count, *metadata, parallel=8):
        call = {"authority": "any.test", "path": f"/{name}.T/M", "metadata": metadata, "timeout": 20}
        self.calls.begin(target=f"{self.ip}:{PORT}", calls=[call] * count, parallel=parallel)

    def answers(self):
        return self.calls.answer()

    def call(self, name, count, *metadata, **more):
        self.begin(name, count, *metadata, **more)
        return self.answers()

    def endpoints(self, name):
        """{backend's number: what `show endpoints` says}"""
        rows = json.loads(self.shuntctl("show", "endpoints", name))["data"]
        return {int(row["endpoint"].split(":")[0].rsplit(".", 1)[1]): row for row in rows}

    def ejected(self, name):
        return {n for n, row in self.endpoints(name).items() if row["ejected"]}


class Hosts:
    """All of it, serving the clusters: {name: its resources}. The first is asked whether a host serves."""

    def __init__(self, lab, clusters, n_hosts=3, n_backends=5):
        self.lab, self.clusters = lab, clusters
        lab.link(("client", "c0"), ("wire", "to-c"))
        lab.link(("backends", "b0"), ("wire", "to-b"))
        lab.address("client", "c0", "10.80.0.1/16")
        self.numbers = list(range(1, n_backends + 1))
        lab.address("backends", "b0", *(f"{backend(n)}/16" for n in self.numbers))
        self.hosts = [Host(self, n + 1) for n in range(n_hosts)]
        lab.bridge("wire", "bridge0", "to-c", "to-b", *(f"h{host.n}" for host in self.hosts))
        self.backends = Agent(lab, "backends", "backends", "balance_backends.py")
        self.at_backends("listen", *self.numbers)
        self.folder = resources.Folder(lab.dir / "xds")
        self.set(clusters)
        lab.start("xds", "upstream", [BUILD / "tools" / "shunt-xds" / "shunt-xds", "--listen", UPSTREAM,
                                      lab.dir / "xds"])
        self.n_servers = 0
        self.earlier = {host.id: [] for host in self.hosts}  # reports to servers that are gone
        self.server = None
        self.start_server()
        for host in self.hosts:
            host.start()
        for host in self.hosts:
            host.wait_ready(next(iter(clusters)))

    def set(self, clusters):
        routes = [resources.route(f"/{name}.T/", name) for name in clusters]
        self.folder.set(resources.listener("web", "routes"),
                        resources.route_config("routes", resources.virtual_host("all", ["*"], *routes)),
                        *(made for parts in clusters.values() for made in parts))

    def start_server(self, seconds=1):
        self.n_servers += 1
        self.server = Agent(self.lab, "xds", f"lrs-{self.n_servers}", "lrs_agent.py", "0.0.0.0:18000", UPSTREAM)
        self.server.ask(op="every", seconds=seconds)

    def end_server(self):
        """Dies; what it was told is kept."""
        self.earlier = self.reports()
        self.server.process.kill()
        self.server = None

    def report_every(self, seconds):
        self.server.ask(op="every", seconds=seconds)
        for host in self.hosts:
            wait_until(lambda h=host: h.show("info")["lrs_interval_s"] == seconds, START_TIMEOUT_S, "the interval")

    def reports(self):
        """{node's id: all its reports}"""
        now = self.server.ask(op="nodes") if self.server else {}
        return {name: earlier + now.get(name, []) for name, earlier in self.earlier.items()}

    def told(self, name, *hosts):
        """Of a cluster, in sum of the hosts, or of all."""
        tally, reports = Tally(), self.reports()
        for host in hosts or self.hosts:
            tally.add_reports(name, reports[host.id])
        return tally

    def in_progress(self, name):
        """As each host's last report has it, in sum."""
        total = 0
        for reports in self.reports().values():
            last = [report[name] for report in reports if name in report][-1:]
            total += sum(counts["in_progress"] for one in last for counts in one["localities"].values())
        return total

    def at_backends(self, op, *numbers, **more):
        return self.backends.ask(op=op, addresses=[(backend(n), RPC_PORT) for n in numbers], **more)

    def counted(self):
        """{zone: requests}, as the backends counted them."""
        counts = self.at_backends("counts", *self.numbers)
        return {zone(n): counts[f"{backend(n)}:{RPC_PORT}"]["requests"] for n in self.numbers}
