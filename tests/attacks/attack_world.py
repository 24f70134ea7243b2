# SPDX-License-Identifier: Apache-2.0
"""The world of the attacks: one daemon for many rows, an honest backend that the victim and most attackers use, hostile
backends with a cluster each, and the victim.

    victim    10.81.0.1              \\
    attackers 10.66.0.0/16, 10.99.x  -- 10.81.0.10:8080 shuntd -- / 10.82.1.1 nghttpd
    (all in the namespace `client`)                              \\ 10.82.2.1 hostile_backend.py
"""

import contextlib
import json
import os
import pathlib
import ssl
import sys
import time

import hostile_backend
import resources
import row
from agent import Agent
from lab import SUPPORT_CPU, wait_until
from pki import Pki
from resources import Folder
from testbed import EXAMPLE, HERE, Testbed

# More of shunt.yaml, by the name of the world.
WORLDS = {
    "web": "",
    "small": "limits: {connections: 1024}\n",  # clients have 768
    "tight": "limits: {buffers_mib: 32}\n",  # 16384 chunks
    "honest": "",  # with no backend that means harm
    "tls": "",  # the frontend has TLS, and asks for a certificate that clients may leave out
}
BACKEND, HOSTILE, DEAD = "10.82.1.1", "10.82.2.1", "10.82.2.9"
WEB_PORT = 8080
GATEWAY = "10.81.0.1"
ATTACKERS = "10.66.0.0/16"
ROUTES = "web-routes"
PAGE = 100_000
SMALL = 600
# The victim is to be measured, and not its wait for a core that attackers use as well: in the world it is on another
# host than theirs, and so are its backend and the balancer.
NICE = 19
REAL_TIME = os.sched_param(1)
HUGE_CHAIN, LONG_CHAIN = 70 << 10, 23 << 10  # bytes of certificates; 24 KiB are taken
SPARE_S = 25  # that an attack may take longer than its time
QUIET_S = {"short": 2, "long": 6}  # by the form of the rows; what is seen is told, and nothing is judged by it


class Ground:
    """One world, running."""

    honest, address = BACKEND, "10.81.0.10:8080"

    def __init__(self, lab, kind, form):
        self.lab, self.kind, self.quiet_s = lab, kind, QUIET_S[form]
        self.bed = Testbed(lab)
        self.bed.settings = WORLDS[kind]
        self.n_attacks = 0
        lab.ip("client", "route", "add", "local", ATTACKERS, "dev", "lo")
        lab.ip("backends", "route", "add", "local", f"{HOSTILE}/32", "dev", "lo")
        self._start_backends()
        self.serve()
        self.bed.start_xds()
        self.pki = make_pki(lab.dir / "pki") if kind == "tls" else None
        env = self._use_tls() if self.pki else None
        self.bed.config_text = self._with_gateway(self.bed.config_text())
        self.bed.start_daemon(env=env)
        self.pid = self.bed.daemon.pid
        self.start_victim()

    def start_victim(self):
        trust = [str(self.pki.folder / "ca.pem")] if self.pki else []
        self.victim = Agent(self.lab, "client", "victim", str(row.TOPICS / "victim_agent.py"), *trust,
                            env={"PYTHONPATH": str(HERE)})
        wait_until(lambda: self.samples() and True, 10, "the victim's first requests")
        as_on_another_host(self.victim.process.pid)
        self.quiet = self._quiet()

    def _use_tls(self):
        """The daemon's environment."""
        secret = self.pki.folder / "tickets"
        secret.write_bytes(os.urandom(32))
        self.bed.settings += f"tls: {{ticket_secret: {secret}}}\n"
        self.bed.frontend_settings = "tls: {certificate: front, ca: ca}"
        at = self.pki.folder
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        made["certificate_providers"] = {
            name: {"plugin_name": "file_watcher", "config": {key: str(path) for key, path in files.items()}}
            for name, files in (("front", {"certificate_file": at / "front.pem", "private_key_file": at / "front.key"}),
                                ("ca", {"ca_certificate_file": at / "ca.pem"}))}
        bootstrap = at / "bootstrap.json"
        bootstrap.write_text(json.dumps(made))
        # Rows bound what the process grows by: under AddressSanitizer it keeps little of what was freed.
        sanitizer = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=16")))
        return {"GRPC_XDS_BOOTSTRAP": str(bootstrap), "ASAN_OPTIONS": sanitizer}

    @staticmethod
    def _with_gateway(text):
        text = text.replace("addresses: [10.81.0.10/24]", f"addresses: [10.81.0.10/24]\n    gateway: {GATEWAY}")
        return lambda: text

    def _start_backends(self):
        self.bed.add_backend_address(BACKEND)
        web = self.bed.start_http_backend("web", BACKEND, SMALL, WEB_PORT)
        (self.lab.dir / "www-web" / "page").write_bytes(b"#" * PAGE)
        hostile = self.lab.start("backends", "hostile",
                                 [sys.executable, row.TOPICS / "hostile_backend.py", HOSTILE], nice=NICE)
        self.bed.wait_connect("backends", BACKEND, WEB_PORT, web)
        as_on_another_host(web.pid)
        self.bed.wait_connect("backends", HOSTILE, max(hostile_backend.PORTS.values()), hostile)

    def serve(self, *more):
        """Routes to all backends, and to more: (prefix, cluster, address, how many requests it takes)."""
        clusters = {"web": (BACKEND, WEB_PORT), row.DEAD_CLUSTER: (DEAD, WEB_PORT)}
        hostile = {"later"} if self.kind == "honest" else hostile_backend.PORTS
        clusters |= {name: (HOSTILE, hostile_backend.PORTS[name]) for name in hostile}
        routes = [resources.route(f"/hostile/{name}", name) for name in hostile]
        routes += [resources.route(prefix, name) for prefix, name, _, _ in more]
        everything = resources.virtual_host("all", ["*"], *routes, resources.route("/dead", row.DEAD_CLUSTER),
                                            resources.route("/", "web"))
        Folder(self.bed.xds_folder).set(
            *[r for name, address in clusters.items() for r in (resources.cluster(name),
                                                                resources.endpoints(name, address))],
            *[r for _, name, address, most in more for r in (
                resources.cluster(name) | {"circuit_breakers": {"thresholds": [{"max_requests": most}]}},
                resources.endpoints(name, address))],
            resources.route_config(ROUTES, everything), resources.listener("web", ROUTES))

    # -- what is seen

    def samples(self):
        """Of the victim, since this was asked last."""
        return self.victim.ask()["ended"]

    def _quiet(self):
        self.samples()
        time.sleep(self.quiet_s)
        return self.samples()

    def used(self):
        """{pool: (objects in use, bytes of one, most ever used)}, of all workers."""
        found = {}
        for each in self.bed.show("pools"):
            used, size, peak = found.get(each["pool"], (0, 0, 0))
            found[each["pool"]] = (used + each["used"], each["bytes"], peak + each["peak"])
        return found

    def counters(self):
        """{"group.name": sum over the workers}"""
        found = {}
        for worker in self.bed.show_workers():
            for name, value in flat("", worker):
                found[name] = found.get(name, 0) + value
        return found

    def resident(self):
        return self.bed.daemon.status_kib("VmRSS") << 10

    # -- the attack

    def victim_ports(self):
        """Of its connections that stay."""
        return self.victim.ask()["ports"]

    def attack(self, name, a_row, seconds, ns="client", nice=NICE, **arguments):
        """The attacker's process; judge.py reads its report. ns: where it runs."""
        # What the sources of one attack have spent is not the next one's.
        self.n_attacks += 1
        arguments |= {"net": self.n_attacks % 256, "victim_ports": self.victim_ports(),
                      "stats_socket": str(self.bed.stats_socket),
                      "pki": str(self.pki.folder) if self.pki else None}
        argv = [sys.executable, row.TOPICS / "attacker.py", a_row.topic, a_row.name, seconds, json.dumps(arguments)]
        return self.lab.start(ns, name, argv, cpu=SUPPORT_CPU, files=4096, nice=nice,
                              env={"PYTHONPATH": str(HERE)})


def as_on_another_host(pid):
    """It waits for no process that is none of these."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that has just ended
            os.sched_setscheduler(int(task.name), os.SCHED_RR, REAL_TIME)


def make_pki(folder):
    """Who is who, and certificates that are followed by many others."""
    pki = Pki(folder)
    for name in ("ca", "strangers"):
        pki.authority(name)
    for name, authority, sans in (("front", "ca", "DNS:front.example"), ("client", "ca", "URI:spiffe://a/client"),
                                  ("stranger", "strangers", "DNS:stranger")):
        pki.leaf(name, authority, sans)
    other = pki.pem("stranger")
    for name, length in (("huge", HUGE_CHAIN), ("long", LONG_CHAIN)):
        n = length // len(ssl.PEM_cert_to_DER_cert(other))
        (folder / f"{name}.pem").write_text(pki.pem("client") + other * n)
        (folder / f"{name}.key").write_text(pki.key("client"))
    return pki


def flat(prefix, value):
    """Numbers by their dotted names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(f"{prefix}.{key}" if prefix else key, inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield prefix, value
