# SPDX-License-Identifier: Apache-2.0
"""Active health checks through the daemon: real peers that say they cannot serve, that do not answer, or that are gone,
and what becomes of requests meanwhile. What happened is read off clients, backends and `show endpoints`."""

import pathlib
import sys
import time

import pytest

import resources
from lab import wait_until
from lab_fixtures import check_end
from test_tls import SIZE, TlsWorld
from testbed import VIP, Testbed

LIMIT_S = 30
PORT = 9090
HERE = pathlib.Path(__file__).resolve().parent
PERIOD = "0.2s"


def check(**kind):
    """One every 0.2 s, whether there is traffic or not."""
    return {"timeout": "5s", "interval": PERIOD, "no_traffic_interval": PERIOD, "interval_jitter_percent": 10,
            "unhealthy_threshold": 2, "healthy_threshold": 2, **kind}


class HealthWorld:
    """Two backends of one cluster, each as healthy as its file says."""

    def __init__(self, lab, kind, health_check, says, prepare=None, more=None, **of_bed):
        """prepare(bed): before anything runs. more: of the cluster."""
        self.bed = Testbed(lab, **of_bed)
        if prepare:
            prepare(self.bed)
        self.kind = kind
        self.ips = ["10.82.1.1", "10.82.1.2"]
        self.cluster = {**resources.cluster("main"), **(more or {})}
        if health_check:
            self.cluster["health_checks"] = [health_check]
        self.backends = []
        for number, ip in enumerate(self.ips):
            self.bed.add_backend_address(ip)
            self.say(number, says)
            self.backends.append(self.start_backend(number))
        self.folder = resources.Folder(self.bed.xds_folder)
        self.apply()
        self.bed.start_xds()
        self.bed.start_daemon()

    def apply(self, count=2):
        self.folder.set(
            resources.listener("web", "routes"),
            resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "main"))),
            self.cluster, resources.endpoints("main", *((ip, PORT) for ip in self.ips[:count])))

    def start_backend(self, number):
        argv = [sys.executable, HERE / "health_backend.py", self.kind, f"{self.ips[number]}:{PORT}", self.file(number)]
        name = f"backend-{number}-{len(self.bed.lab.processes)}"
        process = self.bed.lab.start("backends", name, argv)
        wait_until(lambda: "listens" in process.output(), LIMIT_S, f"{name} listens")
        return process

    def file(self, number):
        return self.bed.lab.dir / f"health-{number}"

    def say(self, number, text):
        new = self.file(number).with_suffix(".new")
        new.write_text(str(text))
        new.replace(self.file(number))

    def row(self, number):
        rows = {row["endpoint"]: row for row in self.bed.show("endpoints")}
        return rows.get(f"{self.ips[number]}:{PORT}")

    def wait_for(self, number, health, text):
        """Until it is this healthy, and its last check said so."""
        return wait_until(lambda: self.is_so(number, health, text), LIMIT_S, f"backend {number} {health} {text}")

    def is_so(self, number, health, text):
        row = self.row(number)
        return row and row["health"] == health and row["health_check"].startswith(text) and row

    def n_checks(self, number):
        return self.backends[number].output().count("check ")

    def metric(self, name):
        line, = [line for line in self.bed.shuntctl("show", "metrics").splitlines()
                 if line.startswith(f"shunt_cluster_{name}{{") and '"main"' in line]
        return float(line.rsplit(" ", 1)[1])


@pytest.fixture(name="make")
def fixture_make(lab):
    worlds = []

    def make(*arguments, **more):
        worlds.append(HealthWorld(lab, *arguments, **more))
        return worlds[-1]
    yield make
    for world in worlds:
        check_end(world.bed)


def test_ahc_04_a_grpc_server_that_says_it_does_not_serve_gets_no_requests_and_none_fails(make):
    world = make("grpc", check(grpc_health_check={"service_name": "shunt.Test"}), 1)
    world.wait_for(0, "UNKNOWN", "passed")
    world.wait_for(1, "UNKNOWN", "passed")
    stop = world.bed.lab.dir / "stop"
    load = world.bed.start_calls("steady", "steady", stop_file=str(stop))
    wait_until(lambda: all(world.row(i)["requests"] > 20 for i in (0, 1)), LIMIT_S, "both serve")
    world.say(1, 2)
    row = world.wait_for(1, "UNHEALTHY", "NOT_SERVING")
    assert row["state"] == "READY" and row["failing"] and not row["ejected"], row
    assert row["error"] == "failed active health check: NOT_SERVING", row
    wait_until(lambda: world.row(1)["active"] == 0, LIMIT_S, "what it had has ended")
    before = [world.row(i)["requests"] for i in (0, 1)]
    wait_until(lambda: world.row(0)["requests"] > before[0] + 50, LIMIT_S, "the other serves")
    assert world.row(1)["requests"] == before[1]
    assert world.metric("endpoints_unhealthy") == 1
    world.say(1, 1)
    world.wait_for(1, "UNKNOWN", "passed")
    wait_until(lambda: world.row(1)["requests"] > before[1] + 20, LIMIT_S, "it serves again")
    stop.touch()
    assert world.bed.calls_result(load)["calls"] > 100
    assert "check service=shunt.Test user-agent=Shunt/HC" in world.backends[0].output()
    events = world.bed.shuntctl("show", "events")
    assert "endpoint unhealthy" in events and "failed active health check: NOT_SERVING" in events, events
    assert "endpoint healthy" in events, events
    assert world.metric("endpoints_unhealthy") == 0
    assert world.metric("health_check_failures_total") >= 1
    assert world.metric("health_check_successes_total") >= 4


def test_ahc_04_a_server_that_does_not_answer_in_time_is_unhealthy_after_two_checks(make):
    world = make("grpc", check(timeout="1s", grpc_health_check={}), 1)
    world.wait_for(1, "UNKNOWN", "passed")
    world.say(1, "")
    world.wait_for(1, "UNHEALTHY", "timeout")
    assert world.metric("health_check_network_failures_total") >= 2
    world.wait_for(0, "UNKNOWN", "passed")


def test_ahc_02_a_port_of_tcp_that_closes_is_unhealthy_until_it_opens(make):
    world = make("http", check(tcp_health_check={}), 200)
    world.wait_for(0, "UNKNOWN", "passed")
    world.wait_for(1, "UNKNOWN", "passed")
    assert world.backends[1].stop(LIMIT_S) is not None
    world.wait_for(1, "UNHEALTHY", "connection refused")
    answers = world.bed.run_h2load(requests=100, clients=1, streams=10, path="/")
    assert answers.succeeded == 100, answers
    world.backends[1] = world.start_backend(1)
    world.wait_for(1, "UNKNOWN", "passed")


def test_ahc_02_a_path_that_answers_503_is_unhealthy_at_once_and_connections_are_kept(make):
    world = make("http", check(timeout="10s", http_health_check={
        "path": "/healthz", "host": "health.test",
        "request_headers_to_add": [{"header": {"key": "X-Check", "value": "yes"}}]}), 200)
    world.wait_for(0, "UNKNOWN", "passed")
    world.wait_for(1, "UNKNOWN", "passed")
    world.say(1, 503)
    world.wait_for(1, "UNHEALTHY", "status 503")
    wait_until(lambda: world.n_checks(0) > 10, LIMIT_S, "some checks")
    assert "check :method=GET :authority=health.test x-check=yes" in world.backends[0].output()
    # One for requests, one for checks.
    assert world.backends[0].output().count("connection\n") <= 1 + len(world.bed.workers)
    answers = world.bed.run_h2load(requests=100, clients=1, streams=10, path="/")
    assert answers.succeeded == 100, answers
    assert world.row(1)["requests"] == 0


def test_ahc_02_a_check_that_is_to_keep_no_connection_has_one_of_its_own_each_time(make):
    world = make("http", check(reuse_connection=False, http_health_check={"path": "/healthz"}), 200)
    wait_until(lambda: world.n_checks(0) > 10, LIMIT_S, "some checks")
    told = world.backends[0].output()
    assert told.count("connection\n") >= told.count("check ") > 10
    assert world.is_so(0, "UNKNOWN", "passed"), world.row(0)
    assert world.bed.run_h2load(requests=100, clients=1, streams=10, path="/").succeeded == 100


def test_ahc_01_of_two_workers_one_checks_for_both(make):
    world = make("http", check(http_health_check={"path": "/healthz", "host": "health.test"}), 200, workers=(0, 1))
    world.wait_for(0, "UNKNOWN", "passed")
    before, began = world.n_checks(0), time.monotonic()
    wait_until(lambda: world.n_checks(0) >= before + 20, LIMIT_S, "checks")
    each_s = (time.monotonic() - began) / (world.n_checks(0) - before)
    assert each_s > 0.15, each_s  # of two who check it would be half of PERIOD
    world.say(1, 503)
    world.wait_for(1, "UNHEALTHY", "status 503")
    answers = world.bed.run_h2load(requests=400, clients=32, streams=5, path="/")
    assert answers.succeeded == 400, answers
    assert len([w for w in world.bed.show_workers() if w["requests"] > 0]) == 2
    assert world.row(1)["requests"] == 0


def test_ahc_06_a_verdict_outlives_an_update_and_where_all_fail_requests_do(make):
    world = make("http", check(http_health_check={"path": "/healthz"}), 503)
    world.wait_for(0, "UNHEALTHY", "status 503")
    world.wait_for(1, "UNHEALTHY", "status 503")
    done = world.bed.lab.exec("client", ["curl", "-sS", "--max-time", "10",
                                         "--http2-prior-knowledge", "-o", "/dev/null",
                                         "-w", "%{http_code}", f"http://{VIP}:8080/"])
    assert done.stdout == "503", done
    n_checks = world.n_checks(0)
    world.apply(count=1)
    wait_until(lambda: world.row(1) is None, LIMIT_S, "the update")
    assert world.is_so(0, "UNHEALTHY", "status 503"), world.row(0)
    wait_until(lambda: world.n_checks(0) > n_checks + 2, LIMIT_S, "checks go on")
    assert world.is_so(0, "UNHEALTHY", "status 503"), world.row(0)
    world.say(0, 200)
    world.wait_for(0, "UNKNOWN", "passed")
    assert world.bed.run_h2load(requests=10, clients=1, path="/").succeeded == 10
    attempts = world.metric("health_check_attempts_total")
    assert attempts > n_checks
    del world.cluster["health_checks"]
    world.apply(count=1)
    wait_until(lambda: world.row(0)["health_check"] == "", LIMIT_S, "no more checks")
    assert world.metric("health_check_attempts_total") >= attempts


def test_ahc_01_without_configuration_nothing_is_checked(make):
    world = make("grpc", None, 2)
    world.bed.run_calls("unary", count=50)
    assert [world.row(i)["health_check"] for i in (0, 1)] == ["", ""]
    assert [world.n_checks(i) for i in (0, 1)] == [0, 0]
    assert world.metric("health_check_attempts_total") == 0


def test_ahc_02_checks_use_the_tls_of_their_cluster(lab, tmp_path):
    world = TlsWorld(lab, tmp_path)

    def put(kind, **tls):
        made = world.cluster(**tls)
        made["health_checks"] = [check(**kind)]
        world.world.folder.put(made)

    def last_check(health, text):
        row, = [row for row in world.bed.show("endpoints") if row["cluster"] == "tls"]
        return row["health"] == health and row["health_check"].startswith(text)

    put({"http_health_check": {"path": "/tls/mark"}})
    world.start()
    wait_until(lambda: last_check("UNKNOWN", "passed"), LIMIT_S, "a check by TLS")
    assert world.curl("/tls/mark") == (0, f"200 {SIZE}")
    (world.bed.lab.dir / "www-tls" / "tls" / "mark").unlink()
    wait_until(lambda: last_check("UNHEALTHY", "status 404"), LIMIT_S, "the file is missed")
    put({"tcp_health_check": {}})
    wait_until(lambda: last_check("UNKNOWN", "passed"), LIMIT_S, "a handshake is enough")
    put({"tcp_health_check": {}}, ca="strangers")
    wait_until(lambda: last_check("UNHEALTHY", "TLS: "), LIMIT_S, "the backend is not trusted")
    check_end(world.bed)
