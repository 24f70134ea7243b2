# SPDX-License-Identifier: Apache-2.0
"""The metrics' port, read by curl, promtool and a real Prometheus."""

import itertools
import os
import re
import signal
import subprocess
import time

import pytest

import resources
from lab import wait_until
from lab_fixtures import check_end
from scale_world import ScaleWorld
from testbed import EXIT_TIMEOUT_S
from world import ROUTES

ADDRESS = "127.0.0.1:9464"
SETTINGS = f"metrics: {{listen: '{ADDRESS}'}}\n"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
SAMPLE = re.compile(r'^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def fetch(bed, path="/metrics", accept="text/plain", head=False):
    words = ["/usr/bin/python3", "-c", FETCH, ADDRESS, path, accept, "head" if head else "body"]
    return bed.lab.exec("lb", words, timeout=60).stdout


FETCH = """
import http.client, sys
c = http.client.HTTPConnection(sys.argv[1], timeout=50)
c.request("GET", sys.argv[2], headers={"Accept": sys.argv[3]})
r = c.getresponse()
body = r.read().decode()
print(r.status, r.getheader("Content-Type")) if sys.argv[4] == "head" else print(body, end="")
"""


def samples(text):
    """{(name, labels): value}; no sample may be there twice."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.match(line).groups()
        key = (name, frozenset(LABEL.findall(labels or "")))
        assert key not in found, line
        found[key] = float(value)
    return found


def value(found, name, **labels):
    return found[(name, frozenset(labels.items()))]


@pytest.fixture(name="metered")
def fixture_metered(make_world):
    world = make_world()
    world.bed.settings += SETTINGS
    return world.start()


def test_ops_12_counts_are_those_of_the_client(metered):
    bed = metered.bed
    report = bed.run_h2load(requests=5000)
    assert report.perfect, report
    bed.run_calls("unary", count=50)
    found = samples(fetch(bed))
    assert value(found, "shunt_frontend_requests_total", frontend="web") == 5050
    assert value(found, "shunt_frontend_requests_ended_total", frontend="web", cause="ok") == 5050
    assert value(found, "shunt_frontend_answers_total", frontend="web", protocol="http", status="2xx") == 5000
    assert value(found, "shunt_frontend_answers_total", frontend="web", protocol="grpc", status="0") == 50
    assert value(found, "shunt_cluster_answers_total", cluster="rpc", protocol="grpc", status="0") == 50
    assert value(found, "shunt_cluster_requests_total", cluster="rpc") == 50
    for name in ("request", "attempt", "added"):
        assert value(found, f"shunt_cluster_{name}_duration_seconds_count", cluster="rpc") == 50
    request, attempt, added = (value(found, f"shunt_cluster_{name}_duration_seconds_sum", cluster="rpc")
                               for name in ("request", "attempt", "added"))
    assert value(found, "shunt_frontend_request_body_bytes_total", frontend="web") > 0
    assert value(found, "shunt_cluster_answer_body_bytes_total", cluster="rpc") > 0
    assert 0 < added < request and request == pytest.approx(attempt + added, rel=0.01)
    assert value(found, "shunt_ready") == 1


def by_vhost(bed):
    """{(metric, its other labels): value} of each virtual host."""
    found = {}
    for (name, labels), number in samples(fetch(bed)).items():
        rest = dict(labels)
        if name.startswith("shunt_virtual_host_") and "bucket" not in name:
            name = name.removeprefix("shunt_virtual_host_")
            found.setdefault(rest.pop("virtual_host"), {})[(name, *sorted(rest.values()))] = number
    return found


def test_ops_270_virtual_hosts_are_counted_if_asked_for(make_world):
    world = make_world()
    world.bed.settings += f"metrics: {{listen: '{ADDRESS}', virtual_hosts: true}}\n"
    bed = world.start().bed
    assert bed.run_h2load(requests=3000).perfect
    bed.run_calls("unary", count=50)
    counts = by_vhost(bed)["all"]
    assert counts[("requests_total",)] == counts[("requests_ended_total", "ok")] == 3050
    assert counts[("requests_in_flight",)] == 0
    assert (counts[("answers_total", "2xx", "http")], counts[("answers_total", "0", "grpc")]) == (3000, 50)
    assert counts[("request_duration_seconds_count",)] == 3050
    world.set_weights(50, 50)  # other routes, under the same name
    assert bed.run_h2load(requests=1000).perfect
    assert by_vhost(bed)["all"][("requests_total",)] == 4050
    world.set_routes(resources.route_config(
        ROUTES, resources.virtual_host("new", ["*"], resources.route("/", "blue"))))
    wait_until(lambda: list(by_vhost(bed)) == ["new"], 30, "the virtual host's new name")
    assert bed.run_h2load(requests=100).perfect
    assert by_vhost(bed)["new"][("requests_total",)] == 100
    done = subprocess.run(["promtool", "check", "metrics"], input=fetch(bed), capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done


def test_ops_10_promtool_finds_nothing_in_either_form(metered):
    text = fetch(metered.bed)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done
    assert fetch(metered.bed, head=True).strip() == "200 text/plain; version=0.0.4; charset=utf-8"
    assert OPEN_METRICS in fetch(metered.bed, accept=OPEN_METRICS, head=True)
    assert fetch(metered.bed, accept=OPEN_METRICS).endswith("\n# EOF\n")


def test_the_socket_tells_the_same(metered):
    names = {name for name, _ in samples(fetch(metered.bed))}
    assert {name for name, _ in samples(metered.bed.shuntctl("show", "metrics"))} == names


def test_ops_11_endpoints_and_single_clusters_are_told_when_asked_for(metered):
    endpoints = samples(fetch(metered.bed, "/metrics?scope=endpoint"))
    assert {dict(labels).get("cluster") for _, labels in endpoints} == {"blue", "green", "rpc", None}
    assert not any(name.startswith("shunt_endpoint") for name, _ in samples(fetch(metered.bed)))
    blue = samples(fetch(metered.bed, "/metrics?cluster=blue&cluster=blue&cluster=absent"))
    assert {value for _, labels in blue for name, value in labels
            if name in ("cluster", "grpc_lb_backend_service")} == {"blue"}
    assert "200" in fetch(metered.bed, "/metrics?cluster=blue&cluster=absent", head=True)
    assert "400" in fetch(metered.bed, "/metrics?scope=everything", head=True)
    assert "404" in fetch(metered.bed, "/nothing", head=True)
    assert fetch(metered.bed, "/ready") == "ready\n"


def test_ops_273_clusters_that_are_not_there_are_named(metered):
    for query, status, text in (
            ("cluster=absent", 404, "no such cluster: absent\n"),
            ("scope=endpoint&cluster=absent&cluster=blu", 404, "no such cluster: absent, blu\n"),
            ("cluster=a%0d%0ab:%20c", 404, "no such cluster: a??b: c\n"),
            ("cluster=", 400, "cluster= is without a name\n"),
            ("cluster=blue&cluster=", 400, "cluster= is without a name\n")):
        path = f"/metrics?{query}"
        assert fetch(metered.bed, path, head=True) == f"{status} text/plain\n", path
        assert fetch(metered.bed, path) == text, path


HOG = """
import socket, sys, time
kind, n, address = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(":")
held = []
for _ in range(n):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((address[0], int(address[1])))
    if kind == "asks":
        s.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    held.append(s)
print("ready", flush=True)
time.sleep(60)
"""


def start_hog(bed, kind, n):
    """Holds n connections; one that `asks` reads no answer."""
    hog = bed.lab.start("lb", kind, ["/usr/bin/python3", "-c", HOG, kind, n, ADDRESS])
    wait_until(lambda: "ready" in hog.output(), 30, "the hog's connections")
    return hog


FLOOD = """
import socket, sys
address = sys.argv[1].split(":")
s = socket.create_connection((address[0], int(address[1])))
s.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
s.settimeout(3)
sent = 0
try:
    while sent < 200 << 20:
        sent += s.send(bytes(1 << 20))
except OSError:
    pass
print(sent)
"""

ABORT = """
import socket, struct, sys
address = sys.argv[1].split(":")
for _ in range(int(sys.argv[2])):
    s = socket.create_connection((address[0], int(address[1])))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\nX: " + b"a" * 7000 + b"\\r\\n\\r\\n")
    s.recv(1)
    s.close()
"""


def give_up(bed, n):
    """n readers that go when their answer has begun."""
    bed.lab.exec("lb", ["/usr/bin/python3", "-c", ABORT, ADDRESS, str(n)], timeout=60)


def test_ops_14_readers_that_take_nothing_cost_little_and_stop_nobody(lab):
    """1000 clusters make an answer of 13 MB, of which a reader that does not read gets a piece."""
    with ScaleWorld(lab, "sotw", 1000, 2) as world:
        bed = world.bed
        bed.settings += SETTINGS
        world.go()
        bed.start_daemon()
        assert world.ask_all(1).perfect
        text = fetch(bed)
        found = samples(text)
        assert sum(v for (name, _), v in found.items() if name == "shunt_cluster_requests_total") == 4000
        assert value(found, "shunt_metrics_left_out", what="cluster_durations") == 1000 - 512
        assert len(text) < 16 << 20
        before = bed.daemon.status_kib("VmRSS")
        hog = start_hog(bed, "asks", 4)
        wait_until(lambda: "503" in fetch(bed, head=True), 30, "four answers under way")
        assert world.ask_all(1).perfect
        assert bed.shuntctl("show", "info")
        assert bed.daemon.status_kib("VmRSS") - before < 16 << 10
        hog.kill()
        wait_until(lambda: "200" in fetch(bed, head=True), 30, "an answer again")
        give_up(bed, 100)
        before = bed.daemon.status_kib("VmRSS")
        give_up(bed, 800)  # each with a header of 7 kB
        assert bed.daemon.status_kib("VmRSS") - before < 3 << 10
        check_end(bed)


N_CLUSTERS = int(os.environ.get("SHUNT_METRICS", "2000"))


def test_ops_231_a_scrape_of_many_clusters_is_bounded_in_bytes_and_memory(lab):
    """So that one of 10,000 clusters has 32 MiB at most."""
    n = N_CLUSTERS
    with ScaleWorld(lab, "sotw", n, 1) as world:
        bed = world.bed
        bed.settings += SETTINGS
        world.go()
        bed.start_daemon()
        assert world.ask_all(1).perfect
        took, memory = [], bed.daemon.status_kib("VmHWM")
        for _ in range(3):
            before = time.monotonic()
            text = fetch(bed)
            took.append(time.monotonic() - before)
        memory = bed.daemon.status_kib("VmHWM") - memory
        print(f"{n} clusters: {len(text)} bytes in {' '.join(f'{t:.2f}' for t in took)} s, {memory} KiB of memory")
        found = samples(text)
        assert sum(v for (name, _), v in found.items() if name == "shunt_cluster_requests_total") == 4 * n
        # Histograms of the first 512 clusters, and what is of no cluster, are 9 MiB of it.
        assert len(text) < (9 << 20) + n * (23 << 20) / 10000
        assert memory < 32 << 10
        check_end(bed)


def test_ops_14_connections_are_bounded_and_those_that_end_make_room(metered):
    bed = metered.bed
    before = len(os.listdir(f"/proc/{bed.daemon.pid}/fd"))
    hog = start_hog(bed, "idle", 45)  # what is not accepted waits in the kernel
    descriptors = f"/proc/{bed.daemon.pid}/fd"
    wait_until(lambda: len(os.listdir(descriptors)) >= before + 30, 30, "as many as it takes")
    time.sleep(0.5)  # no more
    held = len(os.listdir(descriptors))
    hog.kill()
    assert fetch(bed, "/ready") == "ready\n"
    wait_until(lambda: len(os.listdir(descriptors)) <= held - 30, 30, "their descriptors back")
    assert held - len(os.listdir(descriptors)) <= 32


def test_ops_16_what_is_sent_behind_a_request_takes_no_memory(metered):
    """200 MiB behind a GET."""
    bed = metered.bed
    fetch(bed)
    before = bed.daemon.status_kib("VmRSS")
    bed.lab.exec("lb", ["/usr/bin/python3", "-c", FLOOD, ADDRESS], timeout=60)
    assert bed.daemon.status_kib("VmRSS") - before < 8 << 10
    assert fetch(bed, "/ready") == "ready\n"


def test_ops_174_other_methods_are_refused_with_those_that_are_not(metered):
    methods = (("-X", "POST"), ("-X", "DELETE"), ("-d", "a=b"), ("-T", "/etc/hostname"))
    for path, more in itertools.product(("/", "/metrics", "/ready", "/nosuch"), methods):
        argv = ["curl", "-s", "-D-", "--max-time", "20", *more, f"http://{ADDRESS}{path}"]
        answer = metered.bed.lab.exec("lb", argv).stdout
        final = answer.rpartition("HTTP/1.1 ")[2]  # behind "100 Continue"
        assert final.startswith("405 ") and "Allow: GET, HEAD" in final, (path, answer)


def test_ops_17_who_loses_its_listener_is_not_ready_until_it_is_back(make_world):
    metered = make_world()
    bed = metered.bed
    bed.settings += SETTINGS + "xds: {deleted: drop}\n"
    metered.start()
    assert fetch(bed, "/ready", head=True).startswith("200")
    metered.folder.remove(resources.listener("web", ROUTES))
    wait_until(lambda: fetch(bed, "/ready", head=True).startswith("503"), 30, "not ready")
    assert value(samples(fetch(bed)), "shunt_ready") == 0
    metered.set_weights(75, 25)
    wait_until(lambda: fetch(bed, "/ready", head=True).startswith("200"), 30, "ready again")


@pytest.mark.ends_daemon
def test_ops_20_a_lame_duck_takes_clients_while_probes_hear_no(make_world):
    duck_s = 8
    world = make_world()
    bed = world.bed
    bed.settings += SETTINGS + f"lame_duck_s: {duck_s}\ndrain_s: 2\n"
    world.start()
    assert fetch(bed, "/ready", head=True).startswith("200")
    asked = time.monotonic()
    bed.daemon.signal(signal.SIGTERM)
    wait_until(lambda: fetch(bed, "/ready", head=True).startswith("503"), duck_s, "not ready")
    assert value(samples(fetch(bed)), "shunt_ready") == 0
    assert bed.run_h2load(requests=500).perfect
    assert time.monotonic() - asked < duck_s, "too slow a machine to see the time before"
    assert bed.daemon.wait(EXIT_TIMEOUT_S) == 0, bed.daemon.output()
    assert time.monotonic() - asked >= duck_s
