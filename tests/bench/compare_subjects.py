# SPDX-License-Identifier: Apache-2.0
"""What tools/compare measures: shuntd and its peers, each with one worker on a core of its own, the
generator and the backend on another one, and what all of them cost.

On veth the generator is h2load and the backend nghttpd, for everybody. On memif, which only shuntd
speaks, both are one shunt-load, and shuntd's cost is the busy share of its worker's CPU time: a
worker that polls is always on the CPU.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import envoy_proxy
import h2load
import load_agent
import resources
from lab import Lab, LabError
from testbed import BUILD, LINKS, PORT, URL, VIP, Testbed

BACKEND = "10.82.0.1"
BACKEND_PORT = 8080
ANSWER = 64  # bytes
OFFLOADS = ("tx", "gso", "tso", "gro")
LABEL = "shunt-compare"
RUN_TIMEOUT_S = 120
WARM_UP = 4000  # requests
CHURN = 200  # connections
RATE = 5000  # requests a second, where latency is measured
MANY = 10_000  # routes
WORKER = "rte-worker"
ENVOY = sorted(pathlib.Path(__file__).resolve().parents[2].glob(
    ".venv/lib/python3*/site-packages/envoy/_bin/envoy"))


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


def cpu_s(pid, only=""):
    """CPU seconds of them."""
    total = 0.0
    for task in tasks(pid, only):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
    return total


def prefix(number):
    return f"/r{number:05}/"


def path(n_routes):
    """What is asked for: the last of the routes."""
    return h2load.MARK if n_routes == 1 else prefix(n_routes - 1) + h2load.MARK.lstrip("/")


def prefixes(n_routes):
    return [prefix(i) for i in range(n_routes)] if n_routes > 1 else []


class Sample:
    """One measurement. requests; subject_s, others_s: CPU; per_second; failed; busy: of the loading
    thread, where it polls; latency: shunt-load's, in ns."""

    def __init__(self, requests, subject_s, others_s, per_second, failed, busy=None, latency=None):
        self.requests = requests
        self.subject_s = subject_s
        self.others_s = others_s
        self.per_second = per_second
        self.failed = failed
        self.busy = busy
        self.latency = latency

    def subject_us(self):
        return self.subject_s / self.requests * 1e6

    def whole_us(self):
        return (self.subject_s + self.others_s) / self.requests * 1e6


class OnVeth:
    """A subject between h2load and nghttpd. Subclasses start it."""

    transport = "veth"
    offloads = "on"

    def __init__(self, n_routes=1):
        self.n_routes = n_routes
        self.lab = self.bed = self.process = self.backend = None

    def __enter__(self):
        self.lab = Lab(LABEL)
        try:
            self._build()
        except BaseException:
            self.lab.close()
            raise
        return self

    def __exit__(self, *_):
        self.lab.close()

    def _build(self):
        self.bed = Testbed(self.lab)
        if self.offloads == "on":
            self._kernel_network()
        root = self.lab.dir / "www"
        mark = root / path(self.n_routes).lstrip("/")
        mark.parent.mkdir(parents=True)
        mark.write_bytes(b"#" * ANSWER)
        self.backend = self.lab.start("backends", "backend", first(
            "nghttpd", "--no-tls", "-a", BACKEND, "-d", root, "-m", "1000", BACKEND_PORT), cpu=cores()[1])
        self.bed.wait_connect("backends", BACKEND, BACKEND_PORT, self.backend)
        self.process = self.start()
        self.bed.wait_connect("client", VIP, PORT, self.process)
        self._load(8, 8, WARM_UP)

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

    def _load(self, clients, streams, requests):
        """(h2load's report, its CPU)"""
        argv = ["ip", "netns", "exec", self.lab.ns("client"), "taskset", "-c", str(cores()[1]),
                *first(*h2load.arguments(URL + path(self.n_routes), requests=requests,
                                         clients=clients, streams=streams))]
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
        others = sum(s for _, s in done) + cpu_s(self.backend.pid) - before_backend
        return Sample(ok, cpu_s(self.process.pid) - before, others, ok / sum(r.seconds for r in reports),
                      sum(r.total for r in reports) - ok)

    def churn(self, seconds):
        """Connections with one request each, CHURN at a time."""
        return self._counted(lambda: [self._load(CHURN, 1, CHURN) for _ in range(max(1, round(4 * seconds)))])

    def measure(self, clients, streams, seconds):
        """As many requests as take about so long."""
        guess, _ = self._load(clients, streams, WARM_UP)
        requests = max(WARM_UP, int(guess.rate * seconds) // (clients * streams) * clients * streams)
        return self._counted(lambda: [self._load(clients, streams, requests)])


    def latency(self, seconds):
        """At a fixed rate, by shunt-load, which needs real checksums. Without priority: the kernel takes
        real-time threads that never sleep off the CPU for 50 ms of each second."""
        self._checksums("off")
        prefer(self.process.pid, wanted=False)
        prefer(self.backend.pid, wanted=False)
        before, before_backend = cpu_s(self.process.pid), cpu_s(self.backend.pid)
        argv = load_agent.argv("run", *load_agent.client_words(), "--check", "same", "--probe", "--nap", "-p",
                               path(self.n_routes), "-c", "64", "-r", str(RATE), "-D", str(seconds), "-w",
                               "0.2", core=cores()[1])
        report = report_of(self.lab.exec("client", argv, timeout=RUN_TIMEOUT_S, check=False))
        self._checksums(self.offloads)
        prefer(self.process.pid)
        prefer(self.backend.pid)
        return Sample(report["sent"], cpu_s(self.process.pid) - before,
                      cpu_s(self.backend.pid) - before_backend, report["per_second"], report["failed"],
                      latency=report["latency_ns"])

    def _checksums(self, state):
        self.lab.exec("lb", ["ethtool", "-K", "lb-c", "tx", state, "gso", state, "tso", state])


class HAProxy(OnVeth):
    name = "haproxy"

    @staticmethod
    def version():
        return said(["haproxy", "-v"], "version ")

    def start(self):
        config = self.lab.dir / "haproxy.cfg"
        table = self.lab.dir / "routes.map"  # its fastest way: a tree of prefixes
        table.write_text("".join(f"{p} back\n" for p in prefixes(self.n_routes)))
        uses = f"  use_backend %[path,map_beg({table})]\n" if self.n_routes > 1 else ""
        config.write_text(f"""\
global
  nbthread 1
  maxconn 1900
  tune.h2.max-concurrent-streams 1000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend front
  bind {VIP}:{PORT} proto h2
{uses}  default_backend back
backend back
  server one {BACKEND}:{BACKEND_PORT} proto h2
""")
        return self.lab.start("lb", self.name, first("haproxy", "-db", "-f", config), cpu=cores()[0])


class Nghttpx(OnVeth):
    name = "nghttpx"

    @staticmethod
    def version():
        return said(["nghttpx", "--version"], "nghttpx ")

    def start(self):
        config = self.lab.dir / "nghttpx.conf"
        patterns = ":".join(["/", *prefixes(self.n_routes)])
        config.write_text(f"backend={BACKEND},{BACKEND_PORT};{patterns};proto=h2\n")
        return self.lab.start("lb", self.name, first(
            "nghttpx", f"-f{VIP},{PORT};no-tls", "-n1", "--frontend-http2-max-concurrent-streams=1000",
            f"--conf={config}"), cpu=cores()[0])


class Nginx(OnVeth):
    name = "nginx"

    @staticmethod
    def version():
        return said(["nginx", "-v"], "nginx/")

    def start(self):
        config = self.lab.dir / "nginx.conf"
        locations = "\n".join(f"    location {p} {{ grpc_pass grpc://back; }}"
                              for p in prefixes(self.n_routes))
        config.write_text(f"""\
daemon off;
worker_processes 1;
pid {self.lab.dir}/nginx.pid;
error_log {self.lab.dir}/nginx.err crit;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  http2_max_concurrent_streams 1000;
  upstream back {{ server {BACKEND}:{BACKEND_PORT}; keepalive 512; keepalive_requests 1000000000; }}
  server {{
    listen {VIP}:{PORT} http2;
    location / {{ grpc_pass grpc://back; }}
{locations}
  }}
}}
""")
        return self.lab.start("lb", self.name, first("nginx", "-c", config), cpu=cores()[0])


class Envoy(OnVeth):
    name = "envoy"

    @staticmethod
    def version():
        return said([ENVOY[-1], "--version"], "version: ").split("/")[1]

    def start(self):
        routes = resources.route_config("routes", resources.virtual_host(
            "all", ["*"], *(resources.route(p, "back") for p in prefixes(self.n_routes)),
            resources.route("/", "back")))
        config = envoy_proxy.configuration(routes, {"back": [(BACKEND, BACKEND_PORT)]}, [])
        config["static_resources"]["listeners"][0]["address"] = envoy_proxy.address_of(VIP, PORT)
        limits = {name: 1_000_000 for name in ("max_connections", "max_requests", "max_pending_requests")}
        config["static_resources"]["clusters"][0]["circuit_breakers"] = {"thresholds": [limits]}
        path = self.lab.dir / "envoy.json"
        path.write_text(json.dumps(config))
        return self.lab.start("lb", self.name, first(
            ENVOY[-1], "-c", path, "-l", "error", "--concurrency", "1", "--disable-hot-restart"),
            cpu=cores()[0])


class ShuntOnVeth(OnVeth):
    name = "shunt"
    offloads = "off"  # an AF_PACKET socket sees checksums that nobody made

    @staticmethod
    def version():
        return said([BUILD / "ctrl" / "shuntd", "--version"], "shuntd ")

    def start(self):
        load_agent.serve_echo(self.bed, (BACKEND, BACKEND_PORT), routes_of_echo(self.n_routes))
        prefer(self.bed.daemon.pid, WORKER)
        return self.bed.daemon


class ShuntOnMemif:
    """Both ends are shunt-load's."""

    name = "shunt"
    transport = "memif"
    version = ShuntOnVeth.version

    def __init__(self, n_routes=1):
        self.n_routes = n_routes
        self.lab = self.bed = None

    def __enter__(self):
        self.lab = Lab(LABEL)
        try:
            self.bed = PollingBed(self.lab)
            load_agent.serve_echo(self.bed, routes=routes_of_echo(self.n_routes))
            prefer(self.bed.daemon.pid, WORKER)
        except BaseException:
            self.lab.close()
            raise
        return self

    def __exit__(self, *_):
        self.lab.close()

    def _state(self):
        workers = self.bed.show_workers()
        return (cpu_s(self.bed.daemon.pid, WORKER), sum(w["busy_s"] for w in workers),
                sum(w["idle_s"] for w in workers), sum(w["requests"] for w in workers))

    def _run(self, *words, priority=first):
        before = self._state()
        argv = load_agent.argv("run", *load_agent.memif_words(self.lab), "--check", "same", "--probe", "-p",
                               path(self.n_routes), *map(str, words), core=cores()[1])
        report = report_of(self.lab.exec("lb", priority(*argv), timeout=RUN_TIMEOUT_S, check=False))
        cpu, busy, idle, requests = (b - a for a, b in zip(before, self._state()))
        load = report["busy"]
        return Sample(requests, cpu * busy / (busy + idle), 0.0, report["per_second"],
                      report["failed"], load["client"] + load["echo"], report["latency_ns"])

    def measure(self, clients, streams, seconds):
        return self._run("-c", clients, "-m", streams, "-D", seconds)

    def latency(self, seconds):
        prefer(self.bed.daemon.pid, WORKER, wanted=False)
        sample = self._run("-c", 64, "-r", RATE, "-D", seconds, "-w", 0.2, priority=lambda *argv: argv)
        prefer(self.bed.daemon.pid, WORKER)
        return sample

    def churn(self, seconds):
        return self._run("-c", CHURN, "--requests-per-connection", 1, "-D", seconds)


class PollingBed(Testbed):
    """memif, a worker that never sleeps."""

    def __init__(self, lab):
        super().__init__(lab, device="memif")

    def config_text(self):
        text = super().config_text().replace("idle: backoff", "idle: poll")
        return text.replace("workers: [1]", f"workers: [{cores()[0]}]")


def routes_of_echo(n_routes):
    return [resources.route(p, "echo") for p in prefixes(n_routes)]


def report_of(done):
    """Of a run of shunt-load that has ended."""
    if not done.stdout.strip():
        raise LabError(f"shunt-load: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def said(argv, before):
    """The word behind `before` in what a program says of its version."""
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=30, check=False)
    text = done.stdout + done.stderr
    at = text.find(before)
    return text[at + len(before):].split()[0] if at >= 0 else "?"


def found():
    """(subjects that are here, names of the peers that are not)"""
    peers = [(HAProxy, shutil.which("haproxy")), (Nghttpx, shutil.which("nghttpx")),
             (Nginx, shutil.which("nginx")), (Envoy, ENVOY)]
    here = [ShuntOnMemif, ShuntOnVeth, *(peer for peer, there in peers if there)]
    return here, [peer.name for peer, there in peers if not there]
