# SPDX-License-Identifier: Apache-2.0
"""Hosts with Shunt behind a router that speaks BGP, as contrib/fleet has them; each host, the router, clients and
backends in a namespace of a Lab.

    client 10.90.0.2 -- rc router -- rN 10.80.N.1 -- 10.80.N.2 p0 host N: shuntd's port
                          |    -- mN 10.70.N.1 -- 10.70.N.2 m0 host N: its BGP speaker
                          +------ rb 10.82.255.254 -- backends 10.82.1.x

All hosts have the VIP 10.9.0.1; a packet for it goes to one of those that announce it, by the hash of its flow. It is
there for IPv6 as well: VIP fd09::1, client fd90::2, router fd80:N::ff, host N fd80:N::N; sessions and backends have
IPv4 alone.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import threading
import time

import bird
import resources
from go_build import go_build
from lab import command, wait_until
from testbed import BUILD, EXAMPLE, HERE, ROOT, XDS_ADDRESS

RECIPES = ROOT / "contrib" / "fleet"
VIPS = VIP, VIP6 = "10.9.0.1", "fd09::1"
PORT = 8080
WEB, RPC = ("10.82.1.1", 8080), ("10.82.1.2", 9090)
READY, READY_FILE = "http://127.0.0.1:9464/ready", "file://{dir}/ready-{n}"  # as shunt-announce has them
START_S = 45
RESILIENT_TABLE = 200
FAMILIES = "-4", "-6"  # as ip has them, of VIPS
FRR = "/usr/lib/frr"
FRR_DAEMONS = ("zebra", "staticd", "bgpd", "bfdd")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.25

CONFIG = """\
eal: [--in-memory, --no-huge, -m, "256"]
workers: [{core}]
idle: backoff
limits: {{connections: 4096, buffers_mib: 32, max_connection_age_s: {age_s}, max_connection_age_grace_s: {grace_s}}}
ports:
  - device: "net_af_packet0,iface=p0"
    addresses: [10.80.{n}.2/24, "fd80:{n}::{n}/64"]
    gateway: 10.80.{n}.1
    gateway6: "fd80:{n}::ff"
vips: [{{prefix: {vip}/32, arp: false}}, {{prefix: "{vip6}/128", arp: false}}]
frontends:
  - {{name: web, address: {vip}, port: {port}, target: web}}
  - {{name: web6, address: "{vip6}", port: {port}, target: web}}
stats: {{socket: {dir}/stats-{n}.sock, mode: "0660"}}
metrics: {{listen: "127.0.0.1:9464"}}
ready_file: {dir}/ready-{n}
takeover_socket: {dir}/takeover-{n}.sock
{settings}
"""


def recipe_text(name, n):
    """A file of contrib/fleet as host N's; the files there are host 1's."""
    text = (RECIPES / name).read_text()
    for ours in ("10.70.{}.", "10.80.{}.", "6500{}", "fd80:{0}::{0}"):
        text = text.replace(ours.format(1), ours.format(n)) if "host" in name else text
    return text


def recipe(name, n, folder):
    path = folder / f"{n}-{name}"
    path.write_text(recipe_text(name, n))
    path.chmod(0o644)
    return path


class Bird(bird.Bird):
    """BIRD by a recipe; host n, 0 = the router. told: by shunt-announce."""

    def __init__(self, lab, ns, n):
        super().__init__(lab, ns, recipe_text("bird-host.conf" if n else "bird-router.conf", n))
        self.start()
        self.told = [f"birdc -s {self.socket} {verb} {name}" for name in ("vip", "vip6")
                     for verb in ("enable", "disable")]
        wait_until(self.socket.exists, START_S, f"BIRD of {ns}")


class Frr:
    """FRR's daemons likewise."""

    def __init__(self, lab, ns, n):
        name = "frr-host.conf" if n else "frr-router.conf"
        folder = lab.dir / f"{ns}.frr"
        folder.mkdir()
        shutil.chown(folder, "frr", "frr")  # the daemons' user
        common = ["--vty_socket", folder, "-z", folder / "zserv.api", "-A", "127.0.0.1", "-f", "/dev/null"]
        own = {"bfdd": ["--bfdctl", folder / "bfdd.sock"]}
        for daemon in FRR_DAEMONS:
            lab.start(ns, f"{daemon}-{ns}", [f"{FRR}/{daemon}", *common, "-i", folder / f"{daemon}.pid",
                                             *own.get(daemon, [])])
            wait_until((folder / f"{daemon}.vty").exists, START_S, f"{daemon} of {ns}")
        lab.exec(ns, ["vtysh", "--vty_socket", folder, "-f", recipe(name, n, lab.dir)])
        routes = f"ip route {VIP}/32 blackhole", f"ipv6 route {VIP6}/128 blackhole"
        self.told = [f"vtysh --vty_socket {folder} -c 'conf t' -c '{no}{route}'" for route in routes
                     for no in ("", "no ")]


class Exabgp:
    """ExaBGP, which checks by itself."""

    told = ()

    def __init__(self, lab, ns, n):
        env = {"exabgp.daemon.user": "root", "exabgp.api.cli": "false", "exabgp.tcp.attempts": "0",
               "exabgp.log.level": "INFO"}
        lab.start(ns, f"exabgp-{ns}", ["exabgp", recipe("exabgp-host.conf", n, lab.dir)], env=env)


class Host:
    """One host: daemon, xDS server, speaker. They start when asked to."""

    def __init__(self, world, n, speaker):
        self.world, self.lab, self.n, self.ns = world, world.lab, n, f"host{n}"
        self.daemon = None
        self.runs = 0
        self.lab.link((self.ns, "p0"), ("router", f"r{n}"))
        self.lab.link((self.ns, "m0"), ("router", f"m{n}"))
        self.lab.address("router", f"r{n}", f"10.80.{n}.1/24")
        self.lab.address("router", f"m{n}", f"10.70.{n}.1/24")
        self.lab.address(self.ns, "m0", f"10.70.{n}.2/24")
        world.address6("router", f"r{n}", f"fd80:{n}::ff/64")
        for ns, interface in (("router", f"m{n}"), (self.ns, "m0")):  # with link-local addresses, as everybody has them
            self.lab.enable_ip6(ns, interface)
        self.xds = self.lab.start(self.ns, f"xds-{n}", [BUILD / "tools" / "shunt-xds" / "shunt-xds", "--listen",
                                                        XDS_ADDRESS, world.xds_folder])
        self.speaker = speaker(self.lab, self.ns, n)
        self.announcer = None  # of a speaker that checks by itself
        if self.speaker.told:
            ready = world.ready.format(dir=self.lab.dir, n=n)
            self.announcer = self.lab.start(self.ns, f"announce-{n}", [RECIPES / "shunt-announce", ready,
                                                                       *self.speaker.told])

    def kill_all(self):
        """What a host that dies has no time to do; its links stay. Returns when. Its kernel is not to close the
        speaker's connection for it, nor to say that nobody is there: BFD or the hold time alone may tell."""
        self.lab.nft(self.ns, """table inet dead {
            chain out {
                type filter hook output priority 0;
                oifname m0 tcp flags & (fin | rst) != 0 drop
                oifname m0 meta l4proto icmp drop
            }
        }""")
        dead = [process for process in self.lab.processes if process.alive() and re.fullmatch(
            rf"(announce|xds|shuntd|exabgp|zebra|staticd|bgpd|bfdd|bird)-(host)?{self.n}(-\d+)?", process.name)]
        died = time.monotonic()
        for process in dead:
            os.killpg(process.pid, signal.SIGKILL)
        for process in dead:
            process.kill()
        return died

    def start(self, *words):
        """words: more of its command line."""
        path = self.lab.dir / f"shunt-{self.n}.yaml"
        path.write_text(CONFIG.format(core=self.n % 2, n=self.n, vip=VIP, vip6=VIP6, port=PORT, dir=self.lab.dir,
                                      age_s=self.world.age_s, grace_s=2 * self.world.age_s,
                                      settings=self.world.settings))
        self.runs += 1
        self.daemon = self.lab.start(self.ns, f"shuntd-{self.n}-{self.runs}",
                                     [BUILD / "ctrl" / "shuntd", "-c", path, *words],
                                     env={"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json")}, cpu=None)

    def upgrade(self):
        """A newer process has taken over; returns the older one, which drains."""
        older = self.daemon
        self.start("--takeover")

        def is_in_front():
            told = self.daemon.alive() and self.show("info")
            return told and told["pid"] == self.daemon.pid and told["state"] == "ready"
        wait_until(is_in_front, START_S, f"the newer process of host {self.n} in front")
        return older

    def show(self, what):
        argv = [BUILD / "tools" / "shuntctl", "--socket", self.lab.dir / f"stats-{self.n}.sock", "--json", "show", what]
        return json.loads(command(argv).stdout)["data"]

    def clients(self, vip=VIP):
        """Ports of the client that have a connection to it here."""
        peers = [row["peer"].rsplit(":", 1) for row in self.show("conns")["connections"] if row["side"] == "client"]
        return {int(port) for ip, port in peers if (":" in ip) == (":" in vip)}

    def strays(self):
        """Segments of no connection that were answered by RST."""
        return sum(worker["tcp"]["drop_no_connection"] for worker in self.show("workers").values())

    def goaways(self):
        """That it has sent: one to each client that is to leave, and one more to who stays on for a moment."""
        return sum(worker["h2"]["frames_out_goaway"] for worker in self.show("workers").values())

    def resets(self):
        """RST that it has sent, but for those to segments of no connection."""
        return sum(worker["tcp"]["rsts_out"] for worker in self.show("workers").values()) - self.strays()

    def is_at_rest(self):
        """Every request has had an end."""
        return all(sum(worker["ended"].values()) == worker["requests"] for worker in self.show("workers").values())

    def is_alive(self):
        return self.daemon and self.daemon.alive()

    def is_announced(self):
        return all(f"r{self.n}" in paths for paths in self.world.paths())

    def is_withdrawn(self):
        return not any(f"r{self.n}" in paths for paths in self.world.paths())


class Cpu:
    """What the programs of a lab take of the machine's cores, by kind, from now to told()."""

    def __init__(self, lab):
        self.lab, self.first, self.last = lab, {}, {}
        self.stop = threading.Event()
        self.started, self.idle = self._machine()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @staticmethod
    def _machine():
        """(all, idle) seconds of all cores."""
        words = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(words) / TICKS_PER_S, (words[3] + words[4]) / TICKS_PER_S

    def _sample(self):
        for process in list(self.lab.processes):
            try:
                words = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it has ended: its last figure counts
            seconds = (int(words[11]) + int(words[12])) / TICKS_PER_S
            self.first.setdefault(process.name, seconds if not self.last else 0.0)
            self.last[process.name] = seconds

    def _run(self):
        while not self.stop.is_set():
            self._sample()
            self.stop.wait(SAMPLE_S)

    def told(self):
        """Percent of one core by kind of program, and what nobody took of all cores."""
        self.stop.set()
        self.thread.join()
        self._sample()
        end, idle = self._machine()
        took = (end - self.started) / os.cpu_count()
        kinds = collections.Counter()
        for name, seconds in self.last.items():
            kinds[name.split("-")[0]] += 100 * (seconds - self.first[name]) / took
        told = {kind: round(percent) for kind, percent in kinds.most_common() if percent >= 1}
        return told | {"idle of all": round(100 * (idle - self.idle) / took)}


class Fleet:
    """The router and its world run at once, hosts by add(). ready: where shunt-announce asks; age_s: at which clients
    are sent away, 0 = never."""

    def __init__(self, lab, settings="", resilient=True, router=Bird, full=False, ready=READY, age_s=0):
        self.lab, self.settings, self.ready, self.age_s, self.hosts = lab, settings, ready, age_s, []
        self.xds_folder = lab.dir / "xds"
        self.xds_folder.mkdir()
        lab.link(("client", "c0"), ("router", "rc"))
        lab.link(("backends", "b0"), ("router", "rb"))
        lab.address("router", "rc", "10.90.0.1/24")
        lab.address("router", "rb", "10.82.255.254/16")
        lab.address("client", "c0", "10.90.0.2/24")
        self.address6("router", "rc", "fd90::1/64")
        self.address6("client", "c0", "fd90::2/64")
        lab.address("backends", "b0", f"{WEB[0]}/16", f"{RPC[0]}/16")
        for family, gateway in zip(FAMILIES, ("10.90.0.1", "fd90::1")):
            lab.ip("client", family, "route", "add", "default", "via", gateway)
        lab.ip("backends", "route", "add", "default", "via", "10.82.255.254")
        lab.exec("router", ["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", *(
            f"net.ipv{n}.{name}=1" for n in (4, 6)
            for name in ("fib_multipath_hash_policy", "conf.all.ignore_routes_with_linkdown"))])
        # A packet keeps its sender's hash within a kernel, and the router takes that. It is not to be drawn anew at
        # each retransmission, since none crosses a wire. Older kernels do not ask.
        lab.exec("client", ["sysctl", "-qw", "net.core.txrehash=0"], check=False)
        self.program = go_build("grpcgo", "./fleet", BUILD / "go" / "fleet") if full else None
        self._start_backends()
        self.router = router(lab, "router", 0)
        if resilient:
            for family in FAMILIES:
                lab.ip("router", family, "rule", "add", "pref", "100", "lookup", str(RESILIENT_TABLE))
            process = lab.start("router", "resilient", [RECIPES / "shunt-resilient", RESILIENT_TABLE, *VIPS])
            wait_until(lambda: "watching" in process.output(), START_S, "shunt-resilient")
        self.resilient = resilient

    def address6(self, ns, interface, prefix):
        self.lab.enable_ip6(ns, interface)
        self.lab.ip(ns, "addr", "add", prefix, "dev", interface, "nodad")

    def _start_backends(self):
        www = self.lab.dir / "www"
        www.mkdir()
        (www / "mark").write_bytes(b"#" * 100)
        self.lab.start("backends", "web", ["nghttpd", "--no-tls", "-a", WEB[0], "-d", www, "-m", "1000", str(WEB[1])])
        address = f"{RPC[0]}:{RPC[1]}"
        self.lab.start("backends", "rpc", [self.program, "serve", address] if self.program else
                       [sys.executable, HERE / "grpc_server.py", "rpc", address])
        everything = resources.virtual_host("all", ["*"], resources.route("/shunt.test.Echo/", "rpc"),
                                            resources.route("/", "web"))
        resources.Folder(self.xds_folder).set(
            resources.cluster("web"), resources.endpoints("web", WEB), resources.cluster("rpc"),
            resources.endpoints("rpc", RPC), resources.route_config("routes", everything),
            resources.listener("web", "routes"))

    def add(self, *speakers):
        """Hosts with these speakers, serving and announced."""
        new = [Host(self, len(self.hosts) + 1 + i, speaker) for i, speaker in enumerate(speakers)]
        self.hosts += new
        for host in new:
            host.start()
        self.wait_for(*(host.n for host in self.hosts if host.is_alive()))

    def paths(self):
        """For each VIP interfaces by which packets for it may leave the router."""
        return [self._paths(family, vip) for family, vip in zip(FAMILIES, VIPS)]

    def _paths(self, family, vip):
        table = ["table", str(RESILIENT_TABLE)] if self.resilient else []
        # A table without a route is none.
        shown = command(["ip", "-n", self.lab.ns("router"), family, "-j", "route", "show", *table, vip], check=False)
        routes = json.loads(shown.stdout or "[]") if shown.returncode == 0 else []
        hops = [hop for route in routes for hop in route.get("nexthops", [route])]
        return {hop["dev"] for hop in hops if "linkdown" not in hop.get("flags", [])}

    def wait_for(self, *numbers):
        """Until just these hosts are announced."""
        wanted = {f"r{n}" for n in numbers}
        wait_until(lambda: self.paths() == [wanted] * len(VIPS), START_S, f"paths by {sorted(wanted)}")

    def cut_connections(self):
        """Of the client, that others reset while they were open; RST to one that is closed already counts for none (RFC
        4022, tcpEstabResets), and those that it resets itself are not meant: it closes what has something unread."""
        counters = self.lab.tcp_counters("client")
        return counters["EstabResets"] - counters["TCPAbortOnClose"]

    def note_ways(self):
        """From now on the router notes by which hosts' links a client's segments to the VIPs go. RST apart: those that
        answer to a host that still repeats what it had said are of no connection of the client's."""
        self.lab.nft("router", f"""table inet ways {{
            set seen {{ typeof tcp sport . meta oifname; size 65535; flags dynamic; }}
            chain forward {{
                type filter hook forward priority 0;
                iifname rc tcp dport {PORT} tcp flags & rst == 0 add @seen {{ tcp sport . meta oifname }}
            }}
        }}""")

    def note_resets(self):
        """From now on the router notes whose RST are of a client's connection to the VIPs."""
        self.lab.nft("router", f"""table inet resets {{
            set seen {{ typeof tcp sport . meta iifname; size 65535; flags dynamic; }}
            chain forward {{
                type filter hook forward priority 0;
                oifname rc tcp sport {PORT} tcp flags & rst == rst add @seen {{ tcp dport . meta iifname }}
                iifname rc tcp dport {PORT} tcp flags & rst == rst add @seen {{ tcp sport . meta iifname }}
            }}
        }}""")

    def noted(self, what):
        """{port of the client: numbers of hosts, or "c" for itself} since note_ways(), to which its segments went, or
        since note_resets(), from which RST came."""
        told = collections.defaultdict(set)
        shown = self.lab.exec("router", ["nft", "list", "set", "inet", what, "seen"]).stdout
        for port, who in re.findall(r'(\d+) \. "r(\w+)"', shown):
            told[int(port)].add(int(who) if who.isdecimal() else who)
        return told

    def start_load(self, channels, per_s, streams, stream_s, vip=VIP):
        """fleet_calls.py, or grpcgo/fleet where it is to be the full load; give its process to end_load()."""
        stop = self.lab.dir / "stop"
        stop.unlink(missing_ok=True)
        load = self.lab.start("client", f"calls-{len(self.lab.processes)}", [
            *([self.program, "load"] if self.program else [sys.executable, HERE / "fleet_calls.py"]),
            f"[{vip}]:{PORT}" if ":" in vip else f"{vip}:{PORT}", stop, channels, per_s, streams, stream_s])
        wait_until(lambda: "ready" in load.output(), START_S, "the load")
        return load

    def end_load(self, load):
        (self.lab.dir / "stop").touch()
        assert load.wait(START_S) == 0, load.output()
        return json.loads(load.output().splitlines()[-1])
