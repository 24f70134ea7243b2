# SPDX-License-Identifier: Apache-2.0
"""Load reports (LRS) of real calls: what the server hears, over all reports, is exactly what
clients saw and backends served (LR-*). Each test has a cluster of its own."""

import collections
import time

import pytest
from xds.data.orca.v3 import orca_load_report_pb2

import resources
from agent import Agent
from lab import wait_until
from resources import Folder, route, route_config, virtual_host
from testbed import BUILD, EXIT_TIMEOUT_S, PORT, VIP, XDS_ADDRESS, Testbed

BACKENDS = {"near-1": "10.82.1.1", "near-2": "10.82.1.2", "far": "10.82.1.3"}
ZONES = {"near": ["near-1", "near-2"], "far": ["far"]}
RPC_PORT = 9090
UPSTREAM = "127.0.0.1:18001"
NAME_SERVER, NAME_PORT = "127.0.0.1", 5353
HOST = "far.test"
REPORTS_LIMIT_S = 45
SELF = {"resource_api_version": "V3", "self": {}}
METRICS = ["cpu_utilization", "named_metrics.queue", "eps"]
HANG_MS = 8000


def place(zone):
    return f"lab/{zone}/"


def endpoints(name, zones=("near", "far"), **more):
    """EDS with a locality for each zone."""
    made = resources.endpoints(name)
    made["endpoints"] = [
        {"locality": {"region": "lab", "zone": zone}, "load_balancing_weight": 1,
         "lb_endpoints": [{"endpoint": {"address": address(BACKENDS[b])}} for b in ZONES[zone]]}
        for zone in zones]
    return {**made, **more}


def address(host):
    return {"socket_address": {"address": host, "port_value": RPC_PORT}}


def cluster(name, **more):
    return {**resources.cluster(name), "lrs_server": SELF, **more}


def by_name(name, host):
    made = cluster(name, type="LOGICAL_DNS", load_assignment={
        "cluster_name": name,
        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(host)}}]}]})
    del made["eds_cluster_config"]
    return made


DROPS = {"policy": {"drop_overloads": [
    {"category": "half", "drop_percentage": {"numerator": 50, "denominator": "HUNDRED"}}]}}
SILENT = cluster("silent")
del SILENT["lrs_server"]
CLUSTERS = {
    "counted": [cluster("counted"), endpoints("counted")],
    "renamed": [cluster("renamed", eds_cluster_config={"eds_config": resources.ADS,
                                                       "service_name": "service"}),
                endpoints("service")],
    "hanging": [cluster("hanging"), endpoints("hanging")],
    "moving": [cluster("moving"), endpoints("moving")],
    "leaving": [cluster("leaving"), endpoints("leaving")],
    "broken": [cluster("broken"), endpoints("broken")],
    "dropping": [cluster("dropping"), endpoints("dropping", **DROPS)],
    "narrow": [cluster("narrow", circuit_breakers={"thresholds": [{"max_requests": 2}]}),
               endpoints("narrow")],
    "named": [by_name("named", HOST)],
    "measured": [cluster("measured", lrs_report_endpoint_metrics=METRICS), endpoints("measured")],
    "unasked": [cluster("unasked"), endpoints("unasked")],
    "silent": [SILENT, endpoints("silent")],
}


class Sums:
    """Of one cluster, over all reports."""

    def __init__(self, name, reports):
        mine = [report[name] for report in reports if name in report]
        self.last = mine[-1] if mine else None
        self.n_reports = len(mine)
        self.places = collections.defaultdict(collections.Counter)
        self.drops = collections.Counter()
        self.metrics = collections.Counter()
        for one in mine:
            for where, counts in one["localities"].items():
                self.places[where].update({k: counts[k] for k in ("issued", "ok", "error")})
                for metric, (number, total) in counts["metrics"].items():
                    self.metrics.update({metric + " n": number, metric + " total": total})
            self.drops.update({**one["drops"], "all": one["dropped"]})

    def total(self, kind):
        return sum(counts[kind] for counts in self.places.values())

    def in_progress(self):
        return {where: counts["in_progress"] for where, counts in self.last["localities"].items()
                if counts["in_progress"]}


class Bed(Testbed):
    """With a name server of its own."""

    def config_text(self):
        return super().config_text() + f"dns: {{servers: ['{NAME_SERVER}:{NAME_PORT}']}}\n"

    def start_name_server(self, ns="lb", port=NAME_PORT):
        self.lab.start(ns, f"dns-{ns}", [
            "dnsmasq", "--keep-in-foreground", "--user=root", "--conf-file=/dev/null",
            "--no-resolv", "--no-hosts", f"--address=/{HOST}/{BACKENDS['far']}", "--pid-file=",
            f"--port={port}", f"--listen-address={NAME_SERVER}", "--bind-interfaces"])
        self.wait_connect(ns, NAME_SERVER, port)


class World:
    def __init__(self, lab, clusters=None):
        self.lab = lab
        self.bed = bed = Bed(lab)
        bed.start_name_server()
        for name, ip in BACKENDS.items():
            bed.add_backend_address(ip)
            bed.start_grpc_backend(name, ip, RPC_PORT)
        self.folder = Folder(bed.xds_folder)
        self.set(clusters or CLUSTERS)
        for ip in BACKENDS.values():
            bed.wait_connect("backends", ip, RPC_PORT)
        lab.start("lb", "upstream", [BUILD / "tools" / "shunt-xds" / "shunt-xds", "--listen",
                                     UPSTREAM, bed.xds_folder])
        bed.wait_connect("lb", *UPSTREAM.split(":"))
        self.n_servers = 0
        self.earlier = []  # reports to servers that are gone
        self.start_server()
        bed.start_daemon()
        self.calls = Agent(lab, "client", "calls", "grpc_agent.py")

    def set(self, clusters):
        routes = [route(f"/{name}.T/", name) for name in clusters]
        self.folder.set(resources.listener("web", "reports"),
                        route_config("reports", virtual_host("all", ["*"], *routes)),
                        *(made for parts in clusters.values() for made in parts))

    def start_server(self):
        self.n_servers += 1
        self.server = Agent(self.lab, "lb", f"lrs-{self.n_servers}", "lrs_agent.py", XDS_ADDRESS,
                            UPSTREAM)

    def restart_server(self, pause):
        """Kills it, calls pause(), and starts it again."""
        self.earlier = self.reports()
        self.server.process.kill()
        pause()
        self.start_server()

    def reports(self):
        return self.earlier + self.server.ask(op="reports")

    def sums(self, name):
        return Sums(name, self.reports())

    def wait_for(self, name, condition, what):
        """The cluster's sums when the condition holds."""
        held = []

        def check():
            held[:] = [self.sums(name)]
            return held[0].last and condition(held[0])
        try:
            wait_until(check, REPORTS_LIMIT_S, what, interval=0.1)
        except TimeoutError:
            one = held[0]
            raise AssertionError(f"{what}: {dict(one.places)} {dict(one.drops)} "
                                 f"{dict(one.metrics)} {one.last}") from None
        return held[0]

    def begin_calls(self, name, count, *metadata, parallel=8, timeout=30):
        call = {"authority": "any.test", "path": f"/{name}.T/M", "metadata": metadata,
                "timeout": timeout}
        self.calls.begin(target=f"{VIP}:{PORT}", calls=[call] * count, parallel=parallel)

    def call(self, name, count, *metadata, **more):
        self.begin_calls(name, count, *metadata, **more)
        return self.calls.answer()


def zone_of(answer):
    return place("far" if answer["backend"] == "far" else "near")


def by_place(answers):
    return dict(collections.Counter(zone_of(a) for a in answers))


def issued_of(sums):
    return {where: counts["issued"] for where, counts in sums.places.items() if counts["issued"]}


@pytest.fixture(name="world", scope="module")
def fixture_world(module_lab):
    world = World(module_lab)
    yield world
    assert world.bed.daemon.alive()
    assert world.bed.daemon.stop(EXIT_TIMEOUT_S) == 0


def test_calls_are_counted_by_locality_and_outcome(world):
    """LR-02, LR-06: what the reports sum up to is what the client saw of each locality."""
    good = world.call("counted", 300)
    bad = world.call("counted", 41, ["x-script", "14"])
    assert {a["code"] for a in good} == {"OK"} and {a["code"] for a in bad} == {"UNAVAILABLE"}
    sums = world.wait_for("counted", lambda s: s.total("ok") + s.total("error") >= 341, "341 ends")
    assert issued_of(sums) == by_place(good + bad)
    assert {w: c["ok"] for w, c in sums.places.items()} == by_place(good)
    assert {w: c["error"] for w, c in sums.places.items()} == by_place(bad)
    assert set(sums.places) == {place("near"), place("far")}
    assert sums.last["service"] == "" and not sums.drops["all"]
    for features in world.server.ask(op="streams"):
        assert "envoy.lrs.supports_send_all_clusters" in features
    info = world.bed.show("info")
    assert info["lrs_state"] == "CONNECTED" and info["lrs_interval_s"] == 1
    assert info["lrs_clusters"] == len(CLUSTERS) - 1 and info["lrs_counters_refused"] == 0


def test_cluster_without_lrs_server_is_in_no_report(world):
    world.call("silent", 20)
    before = world.sums("counted").total("ok")
    world.call("counted", 1)
    world.wait_for("counted", lambda s: s.total("ok") == before + 1, "another report")
    assert not any("silent" in report for report in world.reports())


def test_name_of_the_endpoints_and_the_time_are_told(world):
    """LR-05: the measured time since the last report."""
    began = time.monotonic()
    world.call("renamed", 10)
    sums = world.wait_for("renamed", lambda s: s.total("ok") == 10, "10 ends")
    assert sums.last["service"] == "service"
    world.call("renamed", 10)
    sums = world.wait_for("renamed", lambda s: s.total("ok") == 20, "20 ends")
    # Since the one before, which has come meanwhile.
    assert 0.9 < sums.last["seconds"] < time.monotonic() - began, sums.last


def test_calls_under_way_are_told_with_each_report(world):
    """LR-06: in progress is a gauge."""
    world.begin_calls("hanging", 6, ["x-script", f"0wait{HANG_MS}"])
    sums = world.wait_for("hanging", lambda s: s.total("issued") == 6, "6 beginnings")
    assert sum(sums.in_progress().values()) == 6 and sums.total("ok") == 0
    seen = sums.n_reports
    sums = world.wait_for("hanging", lambda s: s.n_reports > seen, "another report")
    assert sum(sums.in_progress().values()) == 6 and sums.total("issued") == 6
    answers = world.calls.answer()
    sums = world.wait_for("hanging", lambda s: s.total("ok") == 6, "6 ends")
    assert sums.in_progress() == {} and issued_of(sums) == by_place(answers)


def test_cancelled_calls_end_as_errors(world):
    answers = world.call("hanging", 4, ["x-script", "0wait8000"], timeout=2)
    assert {a["code"] for a in answers} == {"DEADLINE_EXCEEDED"}
    sums = world.wait_for("hanging", lambda s: s.total("error") == 4, "4 errors")
    assert sums.in_progress() == {} and sums.total("issued") == sums.total("ok") + 4


def test_locality_that_left_is_told_to_its_last_call(world):
    """LR-09: and then it is in no report any more."""
    world.begin_calls("moving", 12, ["x-script", f"0wait{HANG_MS}"], parallel=12)
    sums = world.wait_for("moving", lambda s: s.total("issued") == 12, "12 beginnings")
    there = sums.in_progress()[place("far")]
    world.folder.put(endpoints("moving", ["near"]))
    seen = sums.n_reports
    sums = world.wait_for("moving", lambda s: s.n_reports > seen + 1, "two more reports")
    assert sums.in_progress()[place("far")] == there > 0
    answers = world.calls.answer()
    assert {a["code"] for a in answers} == {"OK"}
    more = world.call("moving", 30)
    assert {zone_of(a) for a in more} == {place("near")}
    sums = world.wait_for("moving", lambda s: s.total("ok") == 42, "42 ends")
    assert issued_of(sums) == by_place(answers + more)
    world.call("moving", 1)  # so that there is a report that is not all zeros
    sums = world.wait_for("moving", lambda s: s.total("ok") == 43 and
                          set(s.last["localities"]) == {place("near")}, "a report without it")


def test_cluster_that_left_is_told_to_its_last_call(world):
    """LR-09."""
    world.begin_calls("leaving", 5, ["x-script", f"0wait{HANG_MS}"])
    world.wait_for("leaving", lambda s: s.total("issued") == 5, "5 beginnings")
    world.set({name: parts for name, parts in CLUSTERS.items() if name != "leaving"})
    try:
        answers = world.calls.answer()
        assert {a["code"] for a in answers} == {"OK"}
        sums = world.wait_for("leaving", lambda s: s.total("ok") == 5, "5 ends")
        assert issued_of(sums) == by_place(answers) and sums.in_progress() == {}
        wait_until(lambda: world.bed.show("info")["lrs_clusters"] == len(CLUSTERS) - 2,
                   REPORTS_LIMIT_S, "the cluster to be gone")
    finally:
        world.set(CLUSTERS)


def test_counts_outlive_broken_streams_and_servers(world):
    """LR-11 over reconnections: the sum is exact. A stream is broken when nothing is on its way."""
    n_streams = len(world.server.ask(op="streams"))
    answers = world.call("broken", 50)
    for round_number in range(1, 3):
        world.wait_for("broken", lambda s: s.total("ok") == len(answers), "all ends")
        assert world.server.ask(op="break") == 1
        answers += world.call("broken", 50)
        wait_until(lambda n=n_streams + round_number: len(world.server.ask(op="streams")) == n,
                   REPORTS_LIMIT_S, "another stream")
    world.wait_for("broken", lambda s: s.total("ok") == 150, "150 ends")
    world.restart_server(lambda: answers.extend(world.call("broken", 50)))
    world.wait_for("broken", lambda s: s.total("ok") >= 200, "200 ends")
    time.sleep(2.5)  # nothing comes twice
    sums = world.sums("broken")
    assert issued_of(sums) == by_place(answers)
    assert sums.total("ok") == 200 and sums.total("error") == 0


def test_drops_are_told_by_category(world):
    """LR-07: they are no locality's."""
    answers = world.call("dropping", 400)
    codes = collections.Counter(a["code"] for a in answers)
    sums = world.wait_for("dropping", lambda s: s.total("ok") + s.drops["all"] >= 400, "400 ends")
    assert codes["OK"] + codes["UNAVAILABLE"] == 400 and 140 < codes["OK"] < 260
    assert sums.drops == {"half": codes["UNAVAILABLE"], "all": codes["UNAVAILABLE"]}
    assert sums.total("issued") == sums.total("ok") == codes["OK"]


def test_refusals_of_the_breaker_are_in_the_sum_of_drops(world):
    """LR-07."""
    answers = world.call("narrow", 9, ["x-script", "0wait5000"], parallel=9)
    codes = collections.Counter(a["code"] for a in answers)
    assert codes == {"OK": 2, "UNAVAILABLE": 7}
    sums = world.wait_for("narrow", lambda s: s.total("ok") + s.drops["all"] >= 9, "9 ends")
    assert sums.drops == {"all": 7} and sums.total("issued") == 2


def test_cluster_by_name_has_the_empty_locality(world):
    """A27-I10, LR-06. The name is known to the name server of shunt.yaml alone."""
    assert {a["backend"] for a in world.call("named", 30)} == {"far"}
    sums = world.wait_for("named", lambda s: s.total("ok") == 30, "30 ends")
    assert issued_of(sums) == {"//": 30}


def load_report(**fields):
    message = orca_load_report_pb2.OrcaLoadReport(**fields)
    return ["x-load-bin", message.SerializeToString().hex()]


def test_metrics_are_told_as_the_cluster_asks(world):
    """LR-10, A85: the values of single requests, summed up, under the names of the list."""
    report = load_report(cpu_utilization=0.25, mem_utilization=0.5, eps=3,
                         named_metrics={"queue": 4, "other": 9})
    for name in ("measured", "unasked"):
        assert {a["code"] for a in world.call(name, 16, report)} == {"OK"}
    world.call("measured", 4)  # without a report
    sums = world.wait_for("measured", lambda s: s.total("ok") == 20 and
                          s.metrics["cpu_utilization n"] >= 16, "20 ends")
    assert sums.metrics == {"cpu_utilization n": 16, "cpu_utilization total": 4,
                            "named_metrics.queue n": 16, "named_metrics.queue total": 64}
    sums = world.wait_for("unasked", lambda s: s.total("ok") == 16, "16 ends")
    assert not sums.metrics
