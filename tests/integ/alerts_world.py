# SPDX-License-Identifier: Apache-2.0
"""A shuntd that has something of everything that alerts look at, under a small steady load, and a Prometheus beside it.

    web, web-tls  -> blue, green (nghttpd), rpc (gRPC), as in world.py
                     /healthz  -> moody: two of which each answers what its file says; outlier detection
                     /checked  -> checked: two with health checks, as healthy as their files say
                     /slow.    -> slow, /narrow. -> narrow: as long as they are told to be; narrow has a small breaker
                     busy.example: a route behind many that look for a text in a long header
                     sealed, which nobody asks: nghttpd with TLS
    spare         -> a listener of its own
"""

import json
import os
import shlex
import sys

import h2load
import resources
from agent import Agent
from lab import LabError, command, wait_until
from lab_fixtures import check_end
from pki import Pki, replace
from prometheus import Prometheus
from test_certs import CA, CERT, KEY
from test_tls import BACKEND as SEALED, TLS_PORT as SEALED_PORT, UPSTREAM, provider
from testbed import EXAMPLE, EXIT_TIMEOUT_S, HERE, PORT, VIP
from world import RPC_PORT, SIZES, WEB_PORT, World

TLS_PORT, SPARE_PORT = 8443, 8081
METRICS = "127.0.0.1:9464"
COLLECTOR = "127.0.0.1:4317"
MOODY = {"moody": ("10.82.1.20", "10.82.1.21"), "checked": ("10.82.1.22", "10.82.1.23")}
HELD = "10.82.1.30"  # a gRPC server for requests that are held
GATEWAYS = ("10.81.0.250", "10.81.0.251")
SOURCES = [f"10.81.0.{n}" for n in range(2, 9)]  # more addresses of clients
LIVE_REQUESTS = 200
NARROW = 100  # places of its breaker
BUSY_ROUTES = 3000
LONG = "x-long: " + 3000 * "a"  # in which each of them looks for something
LOSS = """
table netdev faults {
  chain near {
    type filter hook ingress device "near" priority 0;
    meta protocol ip ip protocol tcp numgen random mod 100 < 25 drop
  }
}
"""
SWEEP_S, EJECTED_S = 6, 150
LIMIT_S = 30
FRAMED = bytes(5)  # an empty message of gRPC


def outlier_detection(factor):
    """Who is ejected stays it for long enough to be told of."""
    return {"interval": f"{SWEEP_S / factor:g}s", "base_ejection_time": f"{EJECTED_S // factor}s",
            "max_ejection_percent": 50, "enforcing_success_rate": 0, "enforcing_failure_percentage": 100,
            "failure_percentage_threshold": 50, "failure_percentage_minimum_hosts": 2,
            "failure_percentage_request_volume": 1}


def health_check():
    return {"timeout": "5s", "interval": "1s", "no_traffic_interval": "1s", "unhealthy_threshold": 2,
            "healthy_threshold": 1, "http_health_check": {"path": "/healthz", "codec_client_type": "HTTP2"}}


class AlertsWorld:
    """start() starts it, close() ends it however far that came. `sink` takes the access log, `collector` the
    traces."""

    def __init__(self, lab, folder, factor):
        self.lab = lab
        self.factor = factor
        self.pki = Pki(folder / "pki")
        self.bootstrap = folder / "bootstrap.json"
        self.state = lab.dir / "state"
        self.world = World(lab, bridges=True, extra_routes=self._routes(), extra=list(self._more(factor)))
        self.bed = self.world.bed
        self.backends = self.world.backends
        self.loads = {}

    def start(self):
        self._make_certificates()
        self._start_moody()
        self.bed.add_backend_address(SEALED)
        self.start_sealed("ca")
        self.bed.add_backend_address(HELD)
        self.bed.wait_connect("backends", HELD, RPC_PORT, self.bed.start_grpc_backend("held", HELD, RPC_PORT))
        self.lab.address("client", "c0", *(f"{ip}/24" for ip in (*SOURCES, *GATEWAYS)))
        self.bed.port_settings[0] = [f"gateways: [{', '.join(GATEWAYS)}]"]
        self._start_takers()
        self.bed.settings += self._settings()
        self.bed.more_frontends = (
            f"{{name: web-tls, address: {VIP}, port: {TLS_PORT}, target: web, tls: {{certificate: front}}}}",
            f"{{name: spare, address: {VIP}, port: {SPARE_PORT}, target: spare}}")
        self.put()
        self.bed.start_xds()
        self.start_daemon()
        self.start_loads()
        self.prometheus = Prometheus(self.bed, self.factor)
        return self

    # -- what the daemon has to do with

    def _make_certificates(self):
        for name in ("ca", "strangers"):
            self.pki.authority(name)
            self.pki.leaf(f"back-{name}", name, f"IP:{SEALED}")
        sans = f"DNS:front.example,IP:{VIP}"
        self.pki.issue("front", "ca", sans, dates=(-1, 60))
        self.pki.issue("ends-soon", "ca", sans, dates=(-88, 2))
        self.pki.issue("ends-today", "ca", sans, dates=(-89.5, 0.5))
        self.pem, self.key = (self.pki.folder / f"served.{kind}" for kind in ("pem", "key"))
        self.serve_certificate("front")
        made = json.loads((EXAMPLE / "bootstrap.json").read_text())
        made["certificate_providers"] = {"front": provider(**{CERT: self.pem, KEY: self.key}),
                                         "ca": provider(**{CA: self.pki.folder / "ca.pem"})}
        self.bootstrap.write_text(json.dumps(made))

    def serve_certificate(self, name):
        replace(self.key, self.pki.key(name))
        replace(self.pem, self.pki.pem(name))

    @staticmethod
    def _routes():
        return [resources.route("/healthz", "moody"), resources.route("/checked", "checked"),
                resources.route("/sealed", "sealed"), resources.route("/slow.", "slow"),
                resources.route("/narrow.", "narrow")]

    @staticmethod
    def _more(factor):
        for name, ips in MOODY.items():
            made = resources.cluster(name)
            made.update({"outlier_detection": outlier_detection(factor)} if name == "moody"
                        else {"health_checks": [health_check()]})
            yield made
            yield resources.endpoints(name, *((ip, WEB_PORT) for ip in ips))
        sealed = resources.cluster("sealed")
        sealed["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": {
            "@type": UPSTREAM, "common_tls_context": {"validation_context": {
                "ca_certificate_provider_instance": {"instance_name": "ca"}}}}}
        yield sealed
        yield resources.endpoints("sealed", (SEALED, SEALED_PORT))
        narrow = resources.cluster("narrow")
        narrow["circuit_breakers"] = {"thresholds": [{"max_requests": NARROW}]}
        for made in (narrow, resources.cluster("slow")):
            yield made
            yield resources.endpoints(made["name"], (HELD, RPC_PORT))
        yield resources.listener("spare", "spare-routes")
        yield resources.route_config("spare-routes", resources.virtual_host("all", ["*"], resources.route("/", "blue")))

    def put(self, blue=75, without=(), changed=()):
        """Writes all resources, with this weight, without those of these names, and with these in others' places."""
        kept = self.world.extra
        names = {resources.name_of(r) for r in changed}
        self.world.extra = [r for r in kept if resources.name_of(r) not in without
                            and not (resources.name_of(r) in names and r["@type"] == resources.CLUSTER)] + list(changed)
        everything = self.world.routes(blue, 100 - blue)
        everything["virtual_hosts"].append(self._busy_host())
        self.world.set_routes(everything)
        self.world.extra = kept

    @staticmethod
    def _busy_host():
        def entry(n):
            header = {"name": "x-long", "string_match": {"contains": f"needle {n}"}}
            return resources.route({"prefix": "/", "headers": [header]}, "blue")
        return resources.virtual_host("busy", ["busy.example"], *map(entry, range(BUSY_ROUTES)),
                                      resources.route("/", "blue"))

    def _start_moody(self):
        for name, ips in MOODY.items():
            for ip in ips:
                self.bed.add_backend_address(ip)
                self.say(ip, 200)
                argv = [sys.executable, HERE / "health_backend.py", "http", f"{ip}:{WEB_PORT}", self._file_of(ip)]
                process = self.lab.start("backends", f"{name}-{ip}", argv)
                wait_until(lambda p=process: "listens" in p.output(), LIMIT_S, f"{name} {ip}")

    def start_sealed(self, authority):
        key, pem = (self.pki.folder / f"back-{authority}.{kind}" for kind in ("key", "pem"))
        process = self.lab.start("backends", "sealed", ["nghttpd", "-a", SEALED, SEALED_PORT, key, pem])
        self.bed.wait_connect("backends", SEALED, SEALED_PORT, process)
        self.backends["sealed"] = process

    def say(self, ip, status):
        replace(self._file_of(ip), f"{status}\n")

    def _file_of(self, ip):
        return self.lab.dir / f"says-{ip}"

    def _start_takers(self):
        """Of lines of the access log, of traces, and a disk of its own for what is kept of xDS."""
        self.pipe = self.lab.dir / "access.pipe"
        os.mkfifo(self.pipe)
        # Open both ways, so that it does not end with a daemon.
        self.sink = self.lab.start("lb", "sink", ["sh", "-c", f"exec cat <> {self.pipe} > /dev/null"])
        self.collector = Agent(self.lab, "lb", "collector", "otlp_agent.py", COLLECTOR)
        self.state.mkdir()
        command(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", self.state])

    def _settings(self):
        return (f"metrics: {{listen: '{METRICS}', virtual_hosts: true}}\n"
                f"state_dir: {self.state}\n"
                "xds: {deleted: drop}\n"
                f"limits: {{requests: {LIVE_REQUESTS}}}\n"
                f"access_log: {{path: {self.pipe}}}\n"
                f"tracing: {{collector: '{COLLECTOR}', sample_per_million: 10000}}\n")

    def start_daemon(self, wait=True):
        self.bed.start_daemon(wait=wait, env={"GRPC_XDS_BOOTSTRAP": str(self.bootstrap)})

    def stop_daemon(self):
        if self.bed.daemon.stop(EXIT_TIMEOUT_S) != 0:
            raise LabError(f"shuntd ended badly: {self.bed.daemon.output()[-3000:]}")

    def revive(self, name):
        cluster, ip = self.world.web_backends[name]
        self.backends[name] = self.bed.start_http_backend(name, ip, SIZES[cluster], WEB_PORT)
        self.bed.wait_connect("backends", ip, WEB_PORT, self.backends[name])
        self.bed.shuntctl("reconnect", cluster)

    # -- clients

    def start_loads(self):
        message = self.lab.dir / "message"
        message.write_bytes(FRAMED)
        self.start_load("plain", f"http://{VIP}:{PORT}{h2load.MARK}", clients=2, streams=1, rate=12)
        self.start_load("moody", f"http://{VIP}:{PORT}/healthz", clients=1, streams=1, rate=20)
        self.start_load("rpc", f"http://{VIP}:{PORT}/shunt.test.Echo/Unary", clients=1, streams=1, rate=6, body=message,
                        fields=("content-type: application/grpc", "te: trailers"))
        self.start_tls_load()

    def start_tls_load(self):
        self.start_load("tls", f"https://{VIP}:{TLS_PORT}{h2load.MARK}", clients=1, streams=1, rate=12)

    def start_load(self, name, url, fields=(), seconds=4, **amount):
        """h2load again and again, since it does not connect a second time by itself."""
        argv = [*h2load.arguments(url, seconds=seconds, **amount), *(w for field in fields for w in ("-H", field))]
        loop = f"while :; do timeout --foreground -s KILL {seconds + 30} {shlex.join(argv)}; sleep 0.3; done"
        self.loads[name] = self.lab.start("client", f"load-{name}", ["bash", "-c", loop])

    def stop_load(self, name):
        self.loads.pop(name).kill()

    def hold(self, path, of, sources=SOURCES):
        """A little more than nine tenths of so many, from these addresses; kill() ends them. Who asks alone gets all of
        it, and of several each no more than its share."""
        argv = [sys.executable, HERE / "hold_agent.py", VIP, PORT, path, of * 9 // 10 // len(sources) + 1, *sources]
        return self.lab.start("client", "hold", argv)

    # -- the end

    def close(self):
        try:
            for name in list(self.loads):
                self.stop_load(name)
            if self.bed.daemon:
                check_end(self.bed)
        finally:
            if os.path.ismount(self.state):
                command(["umount", "-l", self.state])
