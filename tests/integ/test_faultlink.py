# SPDX-License-Identifier: Apache-2.0
"""The faultlink itself, between two ends that are the kernel's: what it is asked to do happens, and only that."""

import json
import math
import sys

import pytest

from faultlink import Faultlink
from lab import wait_until
from testbed import HERE, START_TIMEOUT_S

AGENT = [sys.executable, HERE / "transfer_agent.py"]
PORT = 8080
LIMIT_S = 60
ENDS = {"a": 1, "b": 2}
FAMILIES = {"ipv4": "10.83.0.{}", "ipv6": "fd83::{}"}
MBIT = 125_000


@pytest.fixture(name="wire")
def fixture_wire(lab):
    """wire(family, way, faults…): moves bodies over a Faultlink with them; (report of the agent, the link)."""
    lab.link(("a", "a0"), ("middle", "far"))
    lab.link(("middle", "near"), ("b", "b0"))
    for ns, number in ENDS.items():
        lab.exec(ns, ["sysctl", "-qw", f"net.ipv6.conf.{ns}0.disable_ipv6=0"])
        lab.exec(ns, ["sysctl", "-qw", f"net.ipv4.neigh.{ns}0.mcast_solicit=60"])  # each second: longer than it is dark
        lab.address(ns, f"{ns}0", FAMILIES["ipv4"].format(number) + "/24")
        lab.ip(ns, "addr", "add", FAMILIES["ipv6"].format(number) + "/64", "dev", f"{ns}0", "nodad")
    for family, address in FAMILIES.items():
        lab.start("b", family, [*AGENT, "serve", address.format(2), str(PORT)])
    wait_until(lambda: len(lab.exec("b", ["ss", "-Hltn"]).stdout.splitlines()) == len(FAMILIES), START_TIMEOUT_S,
               "both servers")

    def wire(family, way, length, connections=1, requests=1, limit_s=LIMIT_S, **faults):
        with Faultlink(lab, "middle", **faults) as link:
            argv = [*AGENT, way, FAMILIES[family].format(2), PORT, length, connections, requests, limit_s]
            report = json.loads(lab.exec("a", list(map(str, argv)), timeout=LIMIT_S + 10).stdout)
        return report, link
    return wire


def assert_all_arrived(report, length):
    assert report["failed"] == [] and report["altered"] == 0 and report["bytes"] == length, report


def assert_share(counters, name, share):
    """Within six standard deviations."""
    n = counters["numbered"]
    assert abs(counters[name] - n * share) <= 6 * math.sqrt(n * share * (1 - share)) + 1, counters


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_faster_than_rate_and_delay_allow(wire, family):
    length = 2 << 20
    report, link = wire(family, "down", length, both="rate=50mbit queue=200 delay=15ms")
    assert_all_arrived(report, length)
    assert length / report["seconds"] <= 50 * MBIT
    report, _ = wire(family, "down", 100, requests=10, both="delay=15ms")
    assert_all_arrived(report, 1000)
    assert min(report["latencies"]) >= 0.03
    assert link.total("lost") == link.total("missed") == 0


def test_a_queue_that_is_too_short_drops_its_tail(wire):
    length = 4 << 20
    report, link = wire("ipv4", "up", length, both="delay=10ms", forth="rate=50mbit queue=20")
    assert_all_arrived(report, length)
    assert link.counters["forth"]["queue_full"] > 0 and link.counters["back"]["queue_full"] == 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fault, counter, share", [
    ("loss=2%", "lost", 0.02), ("corrupt=2%", "corrupted", 0.02), ("duplicate=5%", "duplicated", 0.05),
    ("reorder=5%:4ms", "reordered", 0.05)])
def test_faults_are_as_frequent_as_asked_for_and_alter_nothing(wire, family, fault, counter, share):
    length = 8 << 20
    report, link = wire(family, "down", length // 8, connections=8, back=fault)
    assert_all_arrived(report, length)
    assert_share(link.counters["back"], counter, share)
    assert link.counters["forth"][counter] == link.total("missed") == 0


def test_losses_come_in_bursts(wire):
    length = 4 << 20
    report, link = wire("ipv4", "down", length // 8, connections=8, both="burst=0.5%:30%")
    assert_all_arrived(report, length)
    assert link.total("burst_lost") > 10 and link.total("lost") == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_forged_arrives_altered_or_breaks_the_connection(wire, family):
    """That it can be seen: no checksum of TCP's tells of it."""
    report, link = wire(family, "down", 1 << 20, requests=4, limit_s=5, back="forge=2%")
    assert report["altered"] or report["failed"], report
    assert link.counters["back"]["forged"] > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_small_mtu_is_told_by_icmp_and_a_black_hole_is_silent(wire, family):
    length = 1 << 20
    report, link = wire(family, "down", length, limit_s=5, back="mtu=1300 silent=1")
    assert report["bytes"] == 0 and link.counters["back"]["too_big"] > 0, report
    report, link = wire(family, "down", length, back="mtu=1300")
    assert_all_arrived(report, length)
    assert link.counters["back"]["too_big"] > 0


@pytest.mark.parametrize("way", ["both", "back"])
def test_what_meets_a_blackout_waits_for_its_end(wire, way):
    report, link = wire("ipv4", "down", 100, **{way: "blackout=0s:3s"})
    assert_all_arrived(report, 100)
    assert link.counters["back"]["dark"] > 0
    assert (link.counters["forth"]["dark"] > 0) == (way == "both")
