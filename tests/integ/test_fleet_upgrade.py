# SPDX-License-Identifier: Apache-2.0
"""Hosts behind a router that announce by BGP, each taken over by a newer process, one after the other; and clients that
leave at their age when a host has come (docs/takeover.md, docs/scale.md). The whole is opt-in: tools/test fleet."""

import collections
import time

import pytest

from fleet_world import READY_FILE, START_S, VIP, VIP6, VIPS, Bird, Exabgp, Frr
from lab import wait_until
from takeover_world import clean
from test_fleet import EXIT_S, FullLoad, fixture_make_fleet, port_at, whole  # noqa: F401

# A route of another table: who is told of it is told of all.
SIGN = "blackhole", "192.0.2.1", "table", "201"
# Connections in which a third is told from none and all: 33, and 5 is the standard deviation. Fewer than the buckets of
# a resilient group, whose idle ones a host that comes gets.
MANY = 100
AGE_S, LATE_S = 8, 2


class Steadiness:
    """From now on: what the router is told of its routes to the VIPs, what hosts announce, and whom they cut."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.announced, self.cut = self._announced(), fleet.cut_connections()
        self.monitor = fleet.lab.start("router", "routes", ["ip", "monitor", "route"])
        wait_until(self._hears, START_S, "ip monitor")

    def _hears(self):
        for change in ("add", "del"):
            self.fleet.lab.ip("router", "route", change, *SIGN)
        return SIGN[1] in self.monitor.output()

    def _announced(self):
        return [host.announcer.output() for host in self.fleet.hosts if host.announcer]

    def check(self):
        """Nothing has changed: /ready never said no, as shunt-announce asked it, and no route came or went."""
        assert self._announced() == self.announced
        routes = self.monitor.output().splitlines()
        assert not [line for line in routes if any(vip in line for vip in VIPS)], routes
        assert self.fleet.cut_connections() == self.cut


def n_clients(host):
    return sum(len(host.clients(vip)) for vip in VIPS)


def upgrade_all(fleet):
    """Hosts one after the other, each when the older process of the one before has ended."""
    steady, had = Steadiness(fleet), []
    for host in fleet.hosts:
        had.append(n_clients(host))
        older = host.upgrade()
        assert older.wait(EXIT_S) == 0 and clean(host, older.name), older.output()
    steady.check()
    print("clients of each host as it was upgraded:", *had)
    assert all(had), "a host was upgraded that had no clients"


@pytest.mark.timeout(300)
def test_fl_202_hosts_are_upgraded_one_after_the_other_and_no_route_changes(make_fleet):
    """By the ready file (FL-201); neither a unary call nor a stream of a second fails, by IPv4 or IPv6."""
    fleet = make_fleet(ready=READY_FILE)
    loads = [fleet.start_load(channels=8, per_s=50, streams=2, stream_s=1, vip=vip) for vip in VIPS]
    wait_until(lambda: sum(map(n_clients, fleet.hosts)) == 8 * len(VIPS), START_S, "all channels' connections")
    upgrade_all(fleet)
    for load in loads:
        report = fleet.end_load(load)
        assert report["failed"] == [], report
        assert report["calls"] > 100 and report["streams"] > 3, report


@whole
@pytest.mark.timeout(300)
@pytest.mark.parametrize("router, vip", [(Bird, VIP), (Frr, VIP), (Frr, VIP6)])
def test_fl_202_hosts_are_upgraded_under_full_load_and_no_route_changes(make_fleet, router, vip):
    """Each host with another speaker."""
    fleet = make_fleet((Bird, Frr, Exabgp), settings="drain_s: 15", router=router, full=True)
    load = FullLoad(fleet, vip)
    upgrade_all(fleet)
    load.end_without_failure()


@whole
@pytest.mark.timeout(200)
@pytest.mark.parametrize("router", [Bird, Frr])
def test_fl_52_a_host_that_comes_has_its_share_after_an_age_and_no_call_fails(make_fleet, router):
    """2 -> 3 hosts behind resilient groups, under full load: clients come to it as they leave others at their age."""
    fleet = make_fleet((router, router), router=router, full=True, age_s=AGE_S)
    load = FullLoad(fleet, channels=MANY)
    fleet.add(router)
    came = time.monotonic()
    first = len(fleet.hosts[2].clients())
    time.sleep(1.1 * AGE_S + LATE_S)
    looked, found = time.monotonic(), {port: host.n for host in fleet.hosts for port in host.clients()}
    report = load.end_without_failure()
    at = collections.Counter(found.get(port_at(report, channel, looked)) for channel in range(MANY))
    print(f"of {MANY} connections at each host {dict(at)}; the third had {first} as it came")
    assert all(any(came < opened["at"] <= looked for opened in each) for each in report["connections"])
    assert MANY / 6 < at[3] < MANY / 2, at
