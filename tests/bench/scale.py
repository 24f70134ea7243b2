# SPDX-License-Identifier: Apache-2.0
"""scale.py BUILD clusters|updates: what a large configuration, and a storm of changes of it, cost shuntd
and Envoy. Prints a JSON object a line; tools/bench runs it, with the tests' Python.

clusters: so many CLUSTERS of ENDPOINTS each and a route for each, from an ADS server that holds its
answers back until the process is settled without a configuration; Envoy also has them in its static
configuration. Counted until the process says that it serves: CPU of the control thread (of Envoy its
main thread), of all threads but those that serve, and memory that the process shares with nobody, above
what it had without a configuration. Nobody is at the endpoints: shuntd, which connects to those of
round_robin as gRPC would, fails to, and what that takes is in the figures; with `on_demand` the policy is
ring_hash (of small rings), which waits for requests, as Envoy does with any policy.

updates: in network namespaces, where all endpoints of 1000 clusters are there and connected (two each): a
while without changes, and then as long with RATE EDS responses a second, each of which replaces an
endpoint. The worker has real-time priority, so that a turn's time is its own.
"""

import argparse
import contextlib
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.error
import urllib.request

import scale_server
from envoy.config.bootstrap.v3 import bootstrap_pb2

HERE = pathlib.Path(__file__).resolve().parent
ENVOY = pathlib.Path(sysconfig.get_path("purelib")) / "envoy" / "_bin" / "envoy"
PATIENCE_S = 180
SETTLE_S = 2.0
REST_S = 5.0
UPDATES_CLUSTERS = 1000
UPDATES_ENDPOINTS = 2
MIB = 1 << 20


class Child:
    """A process whose lines are read as they come."""

    def __init__(self, argv, **kwargs):
        self.process = subprocess.Popen(list(map(str, argv)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, **kwargs)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.note(line)
            self.lines.put(line)
        self.lines.put(None)

    def note(self, line):
        """Of each line, at once."""

    def wait_line(self, wanted):
        """The next line with this text."""
        end = time.monotonic() + PATIENCE_S
        seen = []
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                sys.exit(f"{self.process.args[0]} never said {wanted}, but: {''.join(seen[-20:])}")
            seen.append(line)
            if wanted in line:
                return line

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu(self):
        """{thread: (name, seconds)}"""
        found = {}
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found[int(task.name)] = ((task / "comm").read_text().strip(),
                                         int((task / "schedstat").read_text().split()[0]) / 1e9)
        return found

    def memory(self):
        """Bytes that no other process has. Pages of files don't count, which are shared or not as others please."""
        rows = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()[1:]
        kib = {r.split(":")[0]: int(r.split()[1]) for r in rows}
        return (kib["Private_Dirty"] + kib["Swap"]) * 1024

    def main_cpu(self, before, after):
        pid = self.process.pid
        return after[pid][1] - before.get(pid, ("", 0.0))[1]


def cpu_but(serving, before, after):
    """Of all threads but those whose names begin so."""
    return sum(seconds - before.get(t, ("", 0.0))[1] for t, (name, seconds) in after.items()
               if not name.startswith(serving))


class Server(Child):
    def __init__(self, args, envoy_port=0, on_demand=False):
        super().__init__([sys.executable, HERE / "scale_server.py", args.clusters, args.endpoints,
                          "--envoy-port", envoy_port, *(["--on-demand"] if on_demand else [])])
        self.port = json.loads(self.wait_line('"port"'))["port"]

    def go(self):
        """Returns when the first byte left."""
        self.tell("go")
        return json.loads(self.wait_line("first_byte_ns"))["first_byte_ns"]


SHUNT_YAML = """\
eal: [--in-memory, --no-huge, -m, "512"]
workers: [{worker}]
idle: backoff
ports:
  - device: net_null0,no-rx=1
    addresses: [10.0.0.1/8]
frontends:
  - {{name: web, address: 10.0.0.1, port: 8080, target: web}}
stats: {{socket: {folder}/stats.sock, mode: "0600"}}
xds: {{protocol: {protocol}}}
log: {{level: info}}
"""


class Shunt(Child):
    worker_thread = "rte-worker"

    def __init__(self, build, folder, protocol, port):
        server = {"server_uri": f"127.0.0.1:{port}", "channel_creds": [{"type": "insecure"}],
                  "server_features": ["xds_v3"]}
        bootstrap = {"xds_servers": [server], "node": {"id": "bench"}}
        config = pathlib.Path(folder) / "shunt.yaml"
        config.write_text(SHUNT_YAML.format(worker=max(os.sched_getaffinity(0)), folder=folder, protocol=protocol))
        self.live = None  # when, and the threads' CPU then
        super().__init__([build / "ctrl" / "shuntd", "-c", config],
                         env={**os.environ, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap)})
        self.wait_line('msg="started"')

    def note(self, line):
        if not self.live and 'msg="ready"' in line:
            self.live = time.monotonic_ns(), self.cpu()


def row(**words):
    print(json.dumps(words, separators=(",", ":")), flush=True)


def clusters_row(impl, case, n, cpu, wall_s, memory):
    """cpu: (main thread's, all's); memory: (before, when it served, later)."""
    row(bench="clusters", impl=impl, case=case, n=n, ns_op=round(cpu[0] * 1e9 / n), cpu_s=round(cpu[0], 3),
        all_cpu_s=round(cpu[1], 3), wall_s=round(wall_s, 3), mib=round((memory[1] - memory[0]) / MIB, 1),
        mib_later=round((memory[2] - memory[0]) / MIB, 1), mib_empty=round(memory[0] / MIB, 1))


def shunt_clusters(args, protocol, on_demand=False):
    with tempfile.TemporaryDirectory() as folder, Server(args, on_demand=on_demand) as server, \
            Shunt(args.build, folder, protocol, server.port) as shunt:
        time.sleep(SETTLE_S)
        before, memory = shunt.cpu(), [shunt.memory()]
        first_ns = server.go()
        shunt.wait_line('msg="ready"')
        memory.append(shunt.memory())
        live_ns, after = shunt.live
        time.sleep(REST_S)
        memory.append(shunt.memory())
        clusters_row("shunt", f"ads_{protocol}" + ("_on_demand" if on_demand else ""), args.clusters,
                     (shunt.main_cpu(before, after), cpu_but(shunt.worker_thread, before, after)),
                     (live_ns - first_ns) / 1e9, memory)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Envoy(Child):
    """With a static configuration, or what comes by ADS."""

    worker_thread = "wrk:"

    def __init__(self, folder, bootstrap):
        self.admin_port = free_port()
        bootstrap.node.id = bootstrap.node.cluster = "bench"
        address = bootstrap.admin.address.socket_address
        address.address, address.port_value = "127.0.0.1", self.admin_port
        path = pathlib.Path(folder) / "envoy.pb"
        path.write_bytes(bootstrap.SerializeToString())
        self.started_ns = time.monotonic_ns()
        super().__init__([ENVOY, "-c", path, "-l", "error", "--concurrency", "1", "--disable-hot-restart"])

    def is_live(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/ready", timeout=PATIENCE_S) as r:
                return r.read().startswith(b"LIVE")
        except (urllib.error.URLError, OSError):
            return False

    def wait_live(self):
        end = time.monotonic() + PATIENCE_S
        while not self.is_live():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit("envoy does not serve")
            time.sleep(0.01)
        return time.monotonic_ns()


def static_bootstrap(args, n_clusters):
    bootstrap = bootstrap_pb2.Bootstrap()
    for i in range(n_clusters):
        bootstrap.static_resources.clusters.append(scale_server.static_cluster(i, args.endpoints))
    if n_clusters:
        bootstrap.static_resources.listeners.append(scale_server.envoy_listener(n_clusters, free_port()))
    return bootstrap


def envoy_empty(args):
    """What it costs to start without a configuration."""
    with tempfile.TemporaryDirectory() as folder, Envoy(folder, static_bootstrap(args, 0)) as envoy:
        envoy.wait_live()
        time.sleep(SETTLE_S)
        cpu = envoy.cpu()
        return (envoy.main_cpu({}, cpu), cpu_but(envoy.worker_thread, {}, cpu)), envoy.memory()


def envoy_static(args):
    empty_cpu, empty_memory = envoy_empty(args)
    with tempfile.TemporaryDirectory() as folder, \
            Envoy(folder, static_bootstrap(args, args.clusters)) as envoy:
        live_ns, after, at_live = envoy.wait_live(), envoy.cpu(), envoy.memory()
        time.sleep(REST_S)
        cpu = envoy.main_cpu({}, after) - empty_cpu[0], cpu_but(envoy.worker_thread, {}, after) - empty_cpu[1]
        clusters_row("envoy", "static", args.clusters, cpu, (live_ns - envoy.started_ns) / 1e9,
                     (empty_memory, at_live, envoy.memory()))


def ads_bootstrap(protocol, port):
    bootstrap = bootstrap_pb2.Bootstrap()
    server = bootstrap.static_resources.clusters.add(name="ads")
    server.connect_timeout.FromSeconds(5)
    server.load_assignment.cluster_name = "ads"
    address = server.load_assignment.endpoints.add().lb_endpoints.add().endpoint.address.socket_address
    address.address, address.port_value = "127.0.0.1", port
    server.http2_protocol_options.SetInParent()
    ads = bootstrap.dynamic_resources.ads_config
    ads.api_type = ads.DELTA_GRPC if protocol == "delta" else ads.GRPC
    ads.transport_api_version = 2
    ads.grpc_services.add().envoy_grpc.cluster_name = "ads"
    for source in (bootstrap.dynamic_resources.lds_config, bootstrap.dynamic_resources.cds_config):
        source.resource_api_version = 2
        source.ads.SetInParent()
        source.initial_fetch_timeout.FromSeconds(PATIENCE_S)
    return bootstrap


def envoy_ads(args, protocol):
    with tempfile.TemporaryDirectory() as folder, Server(args, free_port()) as server, \
            Envoy(folder, ads_bootstrap(protocol, server.port)) as envoy:
        time.sleep(SETTLE_S)
        before, memory = envoy.cpu(), [envoy.memory()]
        first_ns = server.go()
        live_ns, after = envoy.wait_live(), envoy.cpu()
        memory.append(envoy.memory())
        time.sleep(REST_S)
        memory.append(envoy.memory())
        clusters_row("envoy", f"ads_{protocol}", args.clusters,
                     (envoy.main_cpu(before, after), cpu_but(envoy.worker_thread, before, after)),
                     (live_ns - first_ns) / 1e9, memory)


CLUSTERS_CASES = {
    "shunt/ads_sotw": lambda args: shunt_clusters(args, "sotw"),
    "shunt/ads_delta": lambda args: shunt_clusters(args, "delta"),
    "shunt/ads_sotw_on_demand": lambda args: shunt_clusters(args, "sotw", on_demand=True),
    "shunt/ads_delta_on_demand": lambda args: shunt_clusters(args, "delta", on_demand=True),
    "envoy/static": envoy_static,
    "envoy/ads_sotw": lambda args: envoy_ads(args, "sotw"),
    "envoy/ads_delta": lambda args: envoy_ads(args, "delta"),
}


def bench_clusters(args):
    cases = args.only or CLUSTERS_CASES
    if not ENVOY.exists():
        print("no Envoy beside this Python: left out", file=sys.stderr)
        cases = [case for case in cases if not case.startswith("envoy/")]
    for case in cases:
        CLUSTERS_CASES[case](args)


class Window:
    """What a daemon did since."""

    def __init__(self, bed):
        self.bed = bed
        self.started = time.monotonic()
        self.before = self._look()

    def _look(self):
        task = pathlib.Path(f"/proc/{self.bed.daemon.pid}/schedstat")
        worker = self.bed.show("workers")["worker0"]
        return {"cpu_s": int(task.read_text().split()[0]) / 1e9, "busy_s": worker["busy_s"],
                "long_turns": worker["long_turns"],
                "snapshots": self.bed.show("info")["snapshots_published"]}

    def report(self, case, sent):
        seconds = time.monotonic() - self.started
        d = {key: value - self.before[key] for key, value in self._look().items()}
        row(bench="updates", impl="shunt", case=case, n=UPDATES_CLUSTERS,
            ns_op=round(d["cpu_s"] * 1e9 / sent) if sent else None, sent=sent, seconds=round(seconds, 2),
            snapshots=d["snapshots"], cpu_s=round(d["cpu_s"], 3), worker_busy_s=round(d["busy_s"], 3),
            turns_over_1ms=d["long_turns"])


def prefer_worker(pid):
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().startswith(Shunt.worker_thread):
            os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(1))


def shunt_updates(args, protocol):
    os.environ["SHUNT_BUILD"] = str(args.build.resolve())
    sys.path.insert(0, str(HERE.parent / "integ"))
    from lab import Lab, wait_until  # pylint: disable=import-outside-toplevel  # they read the variable
    from scale_world import ScaleWorld  # pylint: disable=import-outside-toplevel
    with Lab("shunt-bench") as lab, ScaleWorld(lab, protocol, UPDATES_CLUSTERS, UPDATES_ENDPOINTS) as world:
        world.go()
        world.bed.start_daemon()
        prefer_worker(world.bed.daemon.pid)
        wait_until(world.all_ready, PATIENCE_S, "every cluster READY")
        time.sleep(SETTLE_S)
        window = Window(world.bed)
        time.sleep(args.seconds)
        window.report(f"quiet_{protocol}", 0)
        window = Window(world.bed)
        world.churn(args.rate, args.seconds)
        wait_until(world.churned, args.seconds + PATIENCE_S, "the end of the updates")
        window.report(f"updates_{protocol}", world.churned()["sent"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("bench", choices=["clusters", "updates"])
    parser.add_argument("--clusters", type=int, default=10000)
    parser.add_argument("--endpoints", type=int, default=10, help="of each, 10 at most")
    parser.add_argument("--only", action="append", choices=CLUSTERS_CASES, help="of clusters; several")
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    if args.bench == "clusters":
        bench_clusters(args)
    else:
        for protocol in ("sotw", "delta"):
            shunt_updates(args, protocol)


if __name__ == "__main__":
    main()
