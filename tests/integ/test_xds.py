# SPDX-License-Identifier: Apache-2.0
"""Configuration changes and a vanishing management server, under load."""

import json
import sys
import time

import pytest

import resources
from lab import wait_until
from testbed import HERE, PORT, VIP
from world import ROUTES, RPC_PORT, rpc_address, split_of

VERSIONS = 200
LAST_LIVE_S = 60
CHANGE_EVERY_S = 0.05
PROBE_PORT = 8081
PROBE_PATH = "/versioned"


@pytest.fixture(name="world", params=["sotw", "delta"])
def fixture_world(make_world, request):
    """The standard world, by either protocol."""
    world = make_world()
    world.bed.settings = f"xds: {{protocol: {request.param}}}\n"
    world.start()
    assert world.bed.show("xds")["server"]["protocol"] == request.param
    return world


def test_server_killed_and_restarted_under_load(world):
    """TH-53."""
    bed = world.bed
    load = bed.start_h2load("load", requests=32_000, clients=8, streams=8, rate=500)
    time.sleep(2)
    bed.xds.kill()
    time.sleep(2)
    assert load.alive(), "the load ended too early to prove anything"
    bed.start_xds()
    report = bed.h2load_report(load)
    assert report.perfect, report
    world.set_weights(0, 100)
    wait_for_split(bed, 0)


def wait_for_split(bed, blue_percent, timeout=45):
    """Until a whole batch splits so: the change is live."""
    deadline = time.monotonic() + timeout
    while True:
        report = bed.run_h2load(requests=1000)
        assert report.perfect, report
        blue, _ = split_of(report)
        if abs(blue / 10 - blue_percent) < 6:
            return
        assert time.monotonic() < deadline, f"{blue} of 1000 are blue, {blue_percent} % wanted"


def test_weight_change_is_live_and_fails_nothing(world):
    load = world.bed.start_h2load("load", requests=24_000, clients=8, streams=8, rate=600)
    time.sleep(1)
    world.set_weights(20, 80)
    wait_for_split(world.bed, 20)
    report = world.bed.h2load_report(load)
    assert report.perfect, report


def test_removed_endpoint_keeps_its_streams_and_gets_no_more(make_world):
    world = make_world(n_rpc=2).start()
    bed = world.bed
    calls = bed.start_calls("held", "held_streams", streams=8, seconds=4.0)
    wait_until(lambda: "ready" in calls.output(), 30, "open streams")
    time.sleep(1)
    world.folder.put(resources.endpoints("rpc", (rpc_address(2), RPC_PORT)))
    wait_until(lambda: cluster_size(bed, "rpc") == 1, 20, "the change")
    late = bed.run_calls("held_streams", streams=4, seconds=0.5)
    assert {s["backend"] for s in late} == {"rpc-2"}
    held = bed.calls_result(calls)
    assert all(s["complete"] and s["code"] == 0 for s in held), held
    assert {s["backend"] for s in held} == {"rpc-1", "rpc-2"}


def cluster_size(bed, name):
    return {c["cluster"]: c["endpoints"] for c in bed.show("clusters")["clusters"]}[name]


def test_bad_resource_is_refused_by_name_and_changes_nothing(world):
    """TH-51, UPD-04."""
    bed = world.bed
    bad = world.routes(75, 25)
    bad["virtual_hosts"][0]["routes"].append({"route": {"cluster": "blue"}})  # no match
    world.folder.put(bad)
    wait_until(lambda: resource_state(bed, ROUTES)["state"] == "NACKED", 20, "the refusal")
    refused = resource_state(bed, ROUTES)
    assert "match" in refused["error"] and refused["version"] != refused["rejected"], refused
    report = bed.run_h2load(requests=5000)
    assert report.perfect, report
    world.set_weights(0, 100)
    wait_until(lambda: resource_state(bed, ROUTES)["state"] == "ACKED", 20, "the mended resource")
    wait_for_split(bed, 0)


def resource_state(bed, name):
    return {r["name"]: r for r in bed.show("xds")["resources"]}[name]


def version_address(number):
    return f"10.82.2.{number}"


def version(number):
    """A cluster of its own for every version, at an address of its own: an answer tells which
    version served it."""
    name = f"v{number}"
    address = (version_address(number), PROBE_PORT)
    return (resources.cluster(name), resources.endpoints(name, address),
            (resources.route(PROBE_PATH, name),))


def apply_version(world, number):
    """Weights and the versioned route change in one RouteConfiguration, the clusters beside it.
    Every other time the routes are written first, naming a cluster that is still to come."""
    cluster, endpoints, world.extra_routes = version(number)
    world.extra = (cluster, endpoints)
    weight = number % 101
    routes = world.routes(weight, 100 - weight)
    first = (routes, cluster, endpoints) if number % 2 else (cluster, endpoints, routes)
    world.folder.put(*first)
    world.set_weights(weight, 100 - weight)


def test_two_hundred_changes_under_load_are_each_taken_whole(make_world, lab):
    """TH-52."""
    cluster, endpoints, routes = version(1)
    world = make_world(extra_routes=routes, extra=(cluster, endpoints))
    bed = world.bed
    lab.ip("backends", "route", "add", "local", "10.82.2.0/24", "dev", "lo")
    lab.start("backends", "versions", [sys.executable, HERE / "h2_peer.py", "serve", PROBE_PORT])
    bed.wait_connect("backends", version_address(1), PROBE_PORT)
    world.start()
    stop = lab.dir / "stop"
    probe = lab.start("client", "probe", [sys.executable, HERE / "h2_peer.py", "probe", VIP, PORT,
                                          PROBE_PATH, 4, stop])
    load = bed.start_h2load("load", requests=30_000, clients=4, streams=8, rate=500)
    written = {1: time.monotonic()}
    for number in range(2, VERSIONS + 1):
        written[number] = time.monotonic()
        apply_version(world, number)
        time.sleep(max(0.0, written[number] + CHANGE_EVERY_S - time.monotonic()))
    wait_until(lambda: clusters_of(bed, PROBE_PATH) == {f"v{VERSIONS}"}, LAST_LIVE_S, "the last version")
    bed.shuntctl("wait", "config", resource_state(bed, ROUTES)["version"])  # on all workers
    stop.touch()
    assert probe.wait(30) == 0, probe.output()
    check_answers(json.loads(probe.output().splitlines()[-1]), written)
    report = bed.h2load_report(load)
    assert report.perfect, report
    split_of(report)


def clusters_of(bed, path):
    """Where requests of a path may go."""
    said = bed.shuntctl("--json", "explain", "--authority", "any.test", "--path", path)
    return {row["cluster"] for row in json.loads(said)["data"]["clusters"]}


def check_answers(connections, written):
    """Each answer is from a version that existed by then, never older than the one before."""
    distinct = set()
    for answers in connections:
        assert len(answers) > 100
        last = 1
        for status, address, at in answers:
            assert status == "200", (status, address)
            number = int(address.rsplit(".", 1)[1])
            assert number >= last and written[number] <= at, (number, last)
            last = number
            distinct.add(number)
        assert last == VERSIONS
    assert len(distinct) > VERSIONS / 10, sorted(distinct)
