# SPDX-License-Identifier: Apache-2.0
"""A thousand clusters that never rest, from go-control-plane's snapshot cache, whose server is killed
again and again, under load. SHUNT_GOCP_CHURN="SECONDS KILLS" chooses how long and how often."""

import json
import os
import statistics
import sys
import time

import pytest

from go_build import go_build
from lab import wait_until
from lab_fixtures import check_end
from testbed import HERE, PORT, URL, VIP, XDS_ADDRESS, Testbed

SECONDS, KILLS = map(int, os.environ.get("SHUNT_GOCP_CHURN", "10 3").split())
CLUSTERS = 1000
CHANGES_A_SECOND = 100
RATE, CLIENTS = 5000, 8
WEB_PORTS = (8080, 8081, 8082, 8083)  # the first two have what even clusters have
MARKER_PORT = 8090
MARKED = 64 << 8  # the lower half of the address that marks change 0
LAST_MARKED = {"endpoints": 0, "routes": 45}  # how long before the last change
MARKERS = {"endpoints": "ClusterLoadAssignment", "routes": "RouteConfiguration"}
PROBE_PAUSE_S = 0.005
DOWN_S = 0.2
SETTLE_S = 30
MARGIN_S = 6  # that the load begins before and ends after

pytestmark = pytest.mark.timeout(4 * SECONDS + 500)


@pytest.fixture(name="churn", scope="module")
def fixture_churn(tmp_path_factory):
    return go_build("gocp", "./churn", tmp_path_factory.mktemp("churn") / "churn")


class ChurnWorld:
    def __init__(self, lab, program, protocol):
        self.lab = lab
        self.program = program
        self.bed = Testbed(lab)
        self.bed.settings = f"xds: {{protocol: {protocol}}}\n"
        lab.ip("backends", "route", "add", "local", "10.82.0.0/17", "dev", "lo")
        for number, port in enumerate(WEB_PORTS):
            self._start_web(port, number // 2)
        lab.start("backends", "markers", [sys.executable, HERE / "h2_peer.py", "serve", MARKER_PORT])
        for port in (*WEB_PORTS, MARKER_PORT):
            self.bed.wait_connect("backends", "10.82.16.1", port)
        self.stop_probes = lab.dir / "stop"
        self.epoch_ns = 0
        self.changes = 0

    def _start_web(self, port, odd):
        """Answers 200 for the paths of clusters that are so, and 404 for the others'."""
        root = self.lab.dir / f"www-{odd}"
        root.mkdir(exist_ok=True)
        for number in range(odd, CLUSTERS, 2):
            (root / str(number)).write_text("here\n")
        self.lab.start("backends", f"web-{port}", ["nghttpd", "--no-tls", "-d", root, "-m", "1000",
                                                   str(port)])

    def start_server(self):
        self.bed.start_xds([self.program, "-listen", XDS_ADDRESS, "-clusters", CLUSTERS,
                            "-epoch", self.epoch_ns, "-every", f"{1 / CHANGES_A_SECOND}s",
                            "-last", self.changes], cpu=None)

    def start_load(self, seconds):
        uris = self.lab.dir / "uris"
        uris.write_text("".join(f"{URL}/{n}\n" for n in range(CLUSTERS)))
        return self.bed.start_h2load("load", uris=uris, requests=RATE * seconds, clients=CLIENTS,
                                     streams=16, rate=RATE // CLIENTS)

    def start_probe(self, marker):
        return self.lab.start("client", f"probe-{marker}", [
            sys.executable, HERE / "h2_peer.py", "probe", VIP, PORT, f"/marker/{marker}", 1,
            self.stop_probes, PROBE_PAUSE_S])

    def churn(self):
        """All changes, while the server dies at regular times."""
        self.changes = SECONDS * CHANGES_A_SECOND
        self.bed.xds.kill()
        self.epoch_ns = time.time_ns()
        self.start_server()
        for kill in range(1, KILLS + 1):
            time.sleep(max(0.0, self.epoch_ns / 1e9 + kill * SECONDS / (KILLS + 1) - time.time()))
            self.bed.xds.kill()
            time.sleep(DOWN_S)
            self.start_server()
        wait_until(lambda: f"set {self.changes}\n" in self.bed.xds.output(),
                   SECONDS + SETTLE_S, "the last change")

    def last_is_live(self):
        """Whether the daemon has what the server has, and has refused nothing."""
        shown = self.bed.show("xds")
        assert shown["server"]["nacks"] == shown["server"]["undecodable"] == 0
        clusters = {r["name"]: r["state"] for r in shown["resources"] if r["type"] == "cluster"}
        return (f"marker-{self.changes - LAST_MARKED['routes']}" in clusters and len(clusters) == CLUSTERS + 2 and
                set(clusters.values()) == {"ACKED"} and
                not self.bed.show("info")["frontends"][0]["waiting"])

    def sent(self, kind):
        """(version, when) of each response of that type, over all of the server's lives; the clock
        is that of time.monotonic()."""
        offset = time.time() - time.monotonic()
        lines = [line.split() for line in self.bed.xds.output().splitlines()]
        return [(int(words[2]), int(words[3]) / 1e9 - offset) for words in lines
                if words[0] == "sent" and words[1].endswith("." + kind)]


def numbers_of(probe):
    """(number of the change that answered, when) of each answer; all are well, in order."""
    assert probe.wait(30) == 0, probe.output()
    (answers,) = json.loads(probe.output().splitlines()[-1])
    assert {status for status, _, _ in answers} == {"200"}
    found = []
    for _, address, at in answers:
        high, low = map(int, address.split(".")[2:])
        found.append(((high << 8) + low - MARKED, at))
    numbers = [number for number, _ in found]
    assert numbers == sorted(numbers), "a configuration gave way to an older one"
    return found


def delays_of(answers, sent):
    """How long after it was sent each change that was seen answered first."""
    first, found = set(), []
    for number, at in answers:
        if number not in first and number > 0:
            first.add(number)
            found.append(at - min(when for version, when in sent if version >= number))
    return sorted(found)


@pytest.mark.parametrize("protocol", ["sotw", "delta"])
def test_churn_and_a_dying_server_fail_no_request(lab, churn, protocol, capsys, record_property):
    world = ChurnWorld(lab, churn, protocol)
    bed = world.bed
    world.start_server()
    bed.start_daemon()
    load = world.start_load(SECONDS + MARGIN_S)
    probes = {marker: world.start_probe(marker) for marker in MARKERS}
    time.sleep(1)
    world.churn()
    assert load.alive(), "the load ended too early to prove anything"
    wait_until(world.last_is_live, SETTLE_S, "all changes live")
    world.stop_probes.touch()
    told = [f"{protocol}: {world.changes} changes, {KILLS} kills"]
    for marker, probe in probes.items():
        answers = numbers_of(probe)
        delays = delays_of(answers, world.sent(MARKERS[marker]))
        assert answers[-1][0] == world.changes - LAST_MARKED[marker]
        median_ms = statistics.median(delays) * 1000
        record_property(f"{marker} live after, median ms", round(median_ms, 1))
        told.append(f"{marker} live {median_ms:.1f} ms after they were sent (median of "
                    f"{len(delays)}, at most {delays[-1] * 1000:.0f})")
    report = bed.h2load_report(load)
    record_property("requests/s", round(report.rate))
    told.append(f"{report.total} requests, {report.rate:.0f}/s, "
                f"{report.total - report.status_2xx} failed")
    with capsys.disabled():
        print("\n" + "; ".join(told))
    assert report.perfect, report
    check_end(bed)
