# SPDX-License-Identifier: Apache-2.0
"""Backends that only an HTTP proxy can reach (gRFC A86): tinyproxy and Envoy in front of nghttpd, in plain text and
with TLS, of either family; one of two proxies that starts again under load; and a proxy that does anything but open
the way."""

import json
import re
import sys

import pytest

import envoy_proxy
import resources
from connect_table import PROXY_PORT, RAW, by_proxy, wrapped
from lab import wait_until
from lab_fixtures import check_end
from resources import Folder
from steady import steady_load
from test_tls import BACKEND, SIZE, TLS_PORT, TlsWorld
from testbed import HERE, PORT, VIP, Testbed

PROXIES = {4: ("10.82.3.1", "10.82.3.2"), 6: ("fd82::3:1", "fd82::3:2")}
HIDDEN = {4: ("10.99.1.1", "10.99.1.2"), 6: ("fd99::1:1", "fd99::1:2")}  # where shuntd has no way to
BACKEND_PORT = 8080
LIMIT_S = 60  # for what takes a second or two
LOAD = {"requests": 400, "clients": 4, "rate": 100}

pytestmark = pytest.mark.timeout(400)


def through(cluster):
    """The cluster with the wrapper around its transport socket."""
    inner = cluster.pop("transport_socket", {"name": "raw", "typed_config": {"@type": RAW}})
    cluster["transport_socket"] = wrapped(inner)
    return cluster


def text_of(ip, port):
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def start_tinyproxy(bed, ip):
    path = bed.lab.dir / f"tinyproxy-{ip.replace(':', '-')}.conf"
    path.write_text(f"Port {PROXY_PORT}\nListen {ip}\nTimeout 600\nMaxClients 200\nLogLevel Connect\n")
    name = f"{path.stem}-{len(bed.lab.processes)}"
    process = bed.lab.start("backends", name, ["tinyproxy", "-d", "-c", path])
    bed.wait_connect("backends", ip, PROXY_PORT, process)
    return process


def start_envoy(bed, ip):
    """Its log has what it is asked, as tinyproxy's has."""
    path = bed.lab.dir / f"envoy-{ip.replace(':', '-')}.json"
    path.write_text(json.dumps(envoy_proxy.connect_proxy(ip, PROXY_PORT)))
    process = bed.lab.start("backends", path.stem, [
        envoy_proxy.BINARY, "-c", path, "-l", "error", "--concurrency", "1", "--disable-hot-restart",
        "--file-flush-interval-msec", "50"])
    bed.wait_connect("backends", ip, PROXY_PORT, process)
    return process


NO_ENVOY = pytest.mark.skipif(not envoy_proxy.BINARY.exists(), reason="no Envoy")
KINDS = [pytest.param(family, start, id=f"{name}-{family}", marks=marks) for family in (4, 6)
         for name, start, marks in (("tinyproxy", start_tinyproxy, ()), ("envoy", start_envoy, NO_ENVOY))]


def opened(process):
    """How many ways it has opened."""
    return len(re.findall(r"CONNECT \S+ HTTP/1.1", process.output()))


class ConnectWorld:
    """One cluster with two backends, each behind a proxy of its own."""

    def __init__(self, lab, family, **cluster):
        self.bed = Testbed(lab, ip6=family == 6)
        self.backends, self.proxies = HIDDEN[family], PROXIES[family]
        for number, ip in enumerate(self.backends):
            lab.ip("backends", "addr", "add", ip, "dev", "lo", *(["nodad"] if family == 6 else []))
            self.bed.start_http_backend(f"web-{number}", ip, SIZE, BACKEND_PORT)
            self.bed.wait_connect("backends", ip, BACKEND_PORT)
        for ip in self.proxies:
            self.bed.add_backend_address(ip)
        self.folder = Folder(self.bed.xds_folder)
        self.cluster = through({**resources.cluster("main"), **cluster})

    def start(self, *metadata, locality=None):
        """metadata: of each backend."""
        self.set(*metadata, locality=locality)
        self.bed.start_xds()
        self.bed.start_daemon()
        return self

    def set(self, *metadata, locality=None):
        members = resources.endpoints("main", *((ip, BACKEND_PORT) for ip in self.backends[:len(metadata)]))
        for entry, its in zip(members["endpoints"][0]["lb_endpoints"], metadata):
            entry["metadata"] = its
        if locality:
            members["endpoints"][0]["metadata"] = locality
        self.folder.set(
            resources.listener("web", "routes"),
            resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "main"))),
            self.cluster, members)

    def rows(self):
        return {row["endpoint"]: row for row in self.bed.show("endpoints")}

    def row(self, number=0):
        return self.rows()[text_of(self.backends[number], BACKEND_PORT)]

    def counter(self, name):
        return sum(worker["proxy"][name] for worker in self.bed.show_workers())

    def curl(self):
        return self.bed.lab.exec("client", [
            "curl", "-sS", "--http2-prior-knowledge", "--max-time", "20", "-o", "/dev/null",
            "-w", "%{http_code} %{size_download}", f"http://{VIP}:{PORT}/mark"], check=False).stdout


@pytest.fixture(name="make")
def fixture_make(lab):
    worlds = []

    def make(*arguments, **more):
        worlds.append(ConnectWorld(lab, *arguments, **more))
        return worlds[-1]
    yield make
    for world in worlds:
        check_end(world.bed)


@pytest.mark.parametrize("family, start", KINDS)
def test_hc_08_backends_behind_proxies_serve_and_are_called_by_their_own_addresses(make, family, start):
    """HC-04, HC-06, HC-14: one by its own metadata, the other by its locality's; health checks go there as well."""
    world = make(family, health_checks=[{
        "timeout": "5s", "interval": "0.5s", "no_traffic_interval": "0.5s", "unhealthy_threshold": 2,
        "healthy_threshold": 1, "http_health_check": {"path": "/mark"}}])
    processes = [start(world.bed, ip) for ip in world.proxies]
    world.start(by_proxy(world.proxies[0]), {}, locality=by_proxy(world.proxies[1]))
    wait_until(lambda: all(row["state"] == "READY" and row["health_check"] == "passed"
                           for row in world.rows().values()), LIMIT_S, "both ways")
    report = world.bed.run_h2load(requests=4000, clients=4)
    assert report.perfect, report
    for number, ip in enumerate(world.proxies):
        row = world.row(number)
        assert row["proxy"] == text_of(ip, PROXY_PORT) and row["state"] == "READY", row
        assert row["requests"] > 1000 and row["health_check"] == "passed", row
        wait_until(lambda: opened(processes[number]) >= 2, LIMIT_S, "two ways")  # noqa: B023
        assert text_of(world.backends[number], BACKEND_PORT) in processes[number].output()
    assert world.counter("through_opened") >= 4


def test_a_proxy_starts_again_under_load_and_no_request_fails(make):
    world = make(4)
    processes = [start_tinyproxy(world.bed, ip) for ip in world.proxies]
    world.start(*map(by_proxy, world.proxies))
    with steady_load(world.bed, LOAD):
        for turn in range(3):
            wait_until(lambda: world.row(0)["state"] == "READY", LIMIT_S, "the way is open")
            before = world.row(1)["requests"]
            wait_until(lambda: world.row(1)["requests"] > before + 100, LIMIT_S, "requests")  # noqa: B023
            processes[0].kill()
            wait_until(lambda: world.row(0)["error"].endswith("proxy: connection refused"), LIMIT_S, f"turn {turn}")
            processes[0] = start_tinyproxy(world.bed, world.proxies[0])
    wait_until(lambda: world.row(0)["state"] == "READY", LIMIT_S, "the way is open")


@pytest.mark.parametrize("family, start", KINDS)
def test_hc_09_tls_is_the_endpoints_not_the_proxys(lab, tmp_path, family, start):
    """HC-01: its name is asked for and compared, by a proxy of either family."""
    proxy = PROXIES[family][0]
    world = TlsWorld(lab, tmp_path, names=["web.example"], sni="web.example", bed={"ip6": family == 6})
    through(world.world.extra[0])
    world.world.extra[1]["endpoints"][0]["metadata"] = by_proxy(proxy)
    world.world.set_weights(75, 25)
    world.bed.add_backend_address(proxy)
    process = start(world.bed, proxy)
    world.start()
    for _ in range(5):
        assert world.curl("/tls/mark") == (0, f"200 {SIZE}")
    wait_until(lambda: opened(process), LIMIT_S, "the way")
    assert opened(process) == 1 and f"CONNECT {BACKEND}:{TLS_PORT} " in process.output(), process.output()
    assert world.cluster_shown()["tls"] == "mtls"
    check_end(world.bed)


@pytest.mark.parametrize("mode, error, counter", (
    ("407", "proxy: status 407", "through_refused"),
    ("endless", "proxy: answer too long", "through_too_long"),
    ("garbage", "proxy: malformed answer", "through_malformed"),
    ("close", "proxy: closed by peer", "through_closed"),
    ("silence", "proxy: no answer", "through_late"),
))
def test_hc_13_what_a_proxy_does_instead_is_named_and_ends_with_it(make, mode, error, counter):
    world = make(4, connect_timeout="3s")
    word = world.bed.lab.dir / "mode"
    word.write_text(mode)
    agent = world.bed.lab.start("backends", "agent", [
        sys.executable, HERE / "connect_agent.py", world.proxies[0], str(PROXY_PORT), word])
    wait_until(lambda: "listens" in agent.output(), LIMIT_S, "the proxy")
    world.start(by_proxy(world.proxies[0]))
    assert world.curl().startswith("503 ")
    row = wait_until(lambda: world.row()["error"].endswith(error) and world.row(), LIMIT_S, error)
    assert row["state"] in ("TRANSIENT_FAILURE", "CONNECTING") and row["failing"], row
    assert error in str(world.bed.show("failures")), world.bed.show("failures")
    assert world.counter(counter) > 0 and world.counter("through_opened") == 0
    word.write_text("slow")  # a byte at a time
    wait_until(lambda: world.row()["state"] == "READY", LIMIT_S, "the way is open")
    assert world.curl() == f"200 {SIZE}"
    where = text_of(world.backends[0], BACKEND_PORT)
    assert repr(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n") in agent.output()


def test_hc_07_a_changed_proxy_is_followed_without_a_failed_request(make):
    world = make(4)
    processes = [start_tinyproxy(world.bed, ip) for ip in world.proxies]
    world.start(by_proxy(world.proxies[0]))
    with steady_load(world.bed, LOAD):
        for turn in range(6):
            ip = world.proxies[(turn + 1) % 2]
            world.set(by_proxy(ip))
            wait_until(lambda: world.row()["proxy"] == text_of(ip, PROXY_PORT)  # noqa: B023
                       and world.row()["state"] == "READY", LIMIT_S, f"turn {turn}")
    assert all(opened(process) >= 3 for process in processes), [p.output() for p in processes]
