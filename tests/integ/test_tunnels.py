# SPDX-License-Identifier: Apache-2.0
"""Behind an L4 tier of our own (l4_world.py), which keeps no state."""

import collections
import json
import sys

import pytest

from agent import Agent
from l4_world import (HOP, LEAST_SHARE, MTU, REQUESTS, SECOND, SERVED, STRANGER, TIER, TIER6, URL, URL6, WAIT_S, Behind,
                      BehindTwo)
from lab import wait_until
from testbed import EXIT_TIMEOUT_S, HERE, PORT, VIP, VIP6

# Kind, source, target, what is asked for.
TUNNELS = [
    ("ipip", TIER, VIP, URL),
    ("ipip", TIER, VIP, URL6),
    ("ipip", TIER6, VIP6, URL),
    ("ipip", TIER6, VIP6, URL6),
    ("gue", TIER, VIP, URL),
    ("gue1", TIER6, VIP6, URL6),
    ("glb", TIER, VIP, URL),
]
TIMES = 7  # each crafted packet
CRAFTED_S = 15
UPLOAD = 2_000_000  # bytes, some seconds of them
UPLOAD_S = 60
NARROW_MTU = 1000


@pytest.fixture(name="make_behind")
def fixture_make_behind(make_world):
    return lambda **arguments: Behind(make_world(bridges=True, ip6=True, **arguments))


def test_requests_come_by_each_kind_of_tunnel_up_to_the_mtu(make_behind):
    """FL-30, FL-31, FL-34, FL-35: two workers, whose frames are steered by the flow within. None of them is too
    long for a tier that may not cut its packets, and the longest fills the link."""
    behind = make_behind(workers=(0, 1))
    body = behind.lab.dir / "body"
    body.write_bytes(b"b" * 100_000)
    for kind, source, target, url in TUNNELS:
        tier = behind.start(kind, source, target, HOP)
        before = behind.count("tunnel_packets")
        behind.load(url, REQUESTS // len(TUNNELS), body)
        sent = behind.stop(tier)
        print(kind, source, url, sent)
        assert sent["too_long"] == 0 and sent["longest"] == MTU, (kind, source, url, sent)
        assert behind.count("tunnel_packets") - before >= sent["sent"] * LEAST_SHARE
    for name in ("tunnel_forged", "tunnel_malformed", "tunnel_checksum", "tunnel_not_vip"):
        assert behind.count(name) == 0, name
    # A client that has gone answers what comes late by RST, and nobody knows its connection any more.
    assert behind.count("tunnel_relayed") <= behind.count("tunnel_packets") // 100
    assert all(worker["tcp"]["accepted"] for worker in behind.bed.show_workers())


def counts(behind):
    """Of all workers in sum."""
    return sum((collections.Counter(worker["net"]) for worker in behind.bed.show_workers()), collections.Counter())


def of_tunnels(counters):
    return {name: n for name, n in counters.items() if name.startswith("tunnel_")}


def test_whatever_scapy_makes_of_a_tunnel_is_taken_or_dropped_by_its_cause(make_behind):
    """FL-30 to FL-33, FL-37, FL-39: each packet counts as what it is, and as nothing else that a tunnel's can."""
    behind = make_behind()
    (port,) = json.loads(behind.lab.ip("lb", "-j", "link", "show", "lb-c").stdout)
    crafted = Agent(behind.lab, "l4", "crafted", "l4_crafted.py", port["address"])
    wrong = {}
    for name, counters in crafted.ask(op="rows").items():
        before, wanted = counts(behind), collections.Counter(dict.fromkeys(counters, TIMES))
        crafted.ask(op="send", name=name, times=TIMES)

        def counted(before=before, wanted=wanted):
            more = counts(behind) - before
            return of_tunnels(more) == of_tunnels(wanted) and more >= wanted
        try:
            wait_until(counted, CRAFTED_S, name)
        except TimeoutError:
            wrong[name] = (dict(counts(behind) - before), dict(wanted))
    assert not wrong
    tier = behind.start("ipip", TIER, VIP)
    assert behind.answers(URL, WAIT_S)
    behind.stop(tier)


def test_forged_sources_are_dropped_and_strays_go_on(make_behind):
    """FL-30, FL-31, FL-38."""
    behind = make_behind()
    for kind in ("ipip", "gue"):
        forged = behind.count("tunnel_forged")
        tier = behind.start(kind, STRANGER, VIP)
        assert not behind.answers(URL, 1)
        sent = behind.stop(tier)["sent"]
        assert sent > 0
        wait_until(lambda n=forged + sent: behind.count("tunnel_forged") == n, WAIT_S, "all of them counted")
    assert behind.count("tunnel_packets") == 0
    behind.lab.ip("l4", "route", "add", "10.10.0.0/24", "dev", "tun0")
    behind.lab.ip("client", "route", "add", "10.10.0.0/24", "via", TIER)
    tier = behind.start("ipip", TIER, VIP)
    assert not behind.answers(f"http://10.10.0.1:{PORT}", 1)
    assert behind.count("tunnel_not_vip") > 0
    assert behind.answers(URL, WAIT_S)
    behind.stop(tier)
    argv = [sys.executable, HERE / "l4_agent.py", "stray", TIER, VIP, HOP, "10.81.0.1", SERVED]
    assert json.loads(behind.lab.exec("l4", argv).stdout) == {"from": VIP, "next": 1, "whole": True}
    assert behind.count("tunnel_relayed") == 1


def test_a_connection_of_another_host_goes_on_there_by_a_way_that_got_narrow(make_world):
    """FL-38, FL-140, FL-141: once the tier gives its packets to the first host, that one sends them on to the second
    until its client, told by it what a router had told it, sends no longer ones than fit."""
    behind = BehindTwo(make_world(bridges=True, ip6=True, workers=(0, 1)))
    tier = behind.start("glb", TIER, SECOND, VIP)
    upload = behind.start_upload(UPLOAD)
    wait_until(lambda: behind.second_count("tunnel_packets") > 20, WAIT_S, "the second host has the connection")
    tier.stop()
    behind.narrow(NARROW_MTU)
    tier = behind.start("glb", TIER, VIP, SECOND)
    assert upload.wait(UPLOAD_S) == 0, upload.output()
    assert upload.output().split() == ["200", str(UPLOAD)]
    tier.stop()
    now = counts(behind)
    print(of_tunnels(now))
    assert now["tunnel_relayed"] > 100 and now["tunnel_hop_unreachable"] == now["tunnel_hop_refused"] == 0
    assert min(now[f"tunnel_hop_{what}"] for what in ("mtu", "too_long", "told")) > 0
    assert behind.second_count("tunnel_forged") == 0
    assert behind.second_count("accepted", "tcp") == 1
    assert behind.second.stop(EXIT_TIMEOUT_S) == 0, behind.second.output()
