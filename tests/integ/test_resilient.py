# SPDX-License-Identifier: Apache-2.0
"""contrib/fleet/shunt-resilient on a router whose routes the test makes. With speakers it is in test_fleet.py."""

import json
import os
import shutil

import pytest

from fleet_world import FRR, RECIPES, RESILIENT_TABLE, VIP, Frr
from lab import wait_until

GROUP = 9000  # of the first VIP
HOSTS = "10.80.1.2", "10.80.1.3"
SOON_S = 10
MEMBERS = range(10_516, 10_520)
OURS = range(GROUP, 400_000)
N_LINKS = 4
ROUNDS = 4  # FRR makes a group anew in one of two


class Router:
    def __init__(self, lab, env=None):
        self.lab = lab
        lab.link(("router", "r0"), ("hosts", "h0"))
        lab.address("router", "r0", "10.80.1.1/24")
        self.process = lab.start("router", "resilient", [RECIPES / "shunt-resilient", RESILIENT_TABLE, VIP], env)
        wait_until(lambda: "watching" in self.process.output(), SOON_S, "shunt-resilient")

    def announce(self):
        self.lab.ip("router", "route", "add", VIP, *(word for host in HOSTS for word in ("nexthop", "via", host)))
        wait_until(self.is_resilient, SOON_S, "a resilient group")

    def withdraw(self):
        self.lab.ip("router", "route", "del", VIP)
        wait_until(lambda: not self.route(), SOON_S, "no route")

    def route(self):
        shown = self.lab.exec("router", ["ip", "-j", "route", "show", "table", str(RESILIENT_TABLE)], check=False)
        return json.loads(shown.stdout or "[]") if shown.returncode == 0 else []

    def of_frr(self):
        """Next hops and groups that it has made itself, not those that it has sent back."""
        shown = json.loads(self.lab.ip("router", "-j", "nexthop", "show").stdout)
        return {hop["id"] for hop in shown if hop.get("protocol") == "zebra" and hop["id"] not in (GROUP, *MEMBERS)}

    def is_resilient(self):
        shown = self.lab.exec("router", ["ip", "-j", "nexthop", "show", "id", str(GROUP)], check=False)
        groups = json.loads(shown.stdout or "[]") if shown.returncode == 0 else []
        return [group.get("type") for group in groups] == ["resilient"] and [
            route.get("nhid") for route in self.route()] == [GROUP]


with_frr = pytest.mark.skipif(not os.path.isdir(FRR), reason="no FRR")


@pytest.fixture(name="router")
def fixture_router(lab):
    return Router(lab)


def test_fl_160_an_ordinary_group_in_the_place_of_a_resilient_one_is_replaced(router):
    router.announce()
    router.withdraw()
    router.lab.ip("router", "nexthop", "del", "id", str(GROUP))
    router.lab.ip("router", "nexthop", "add", "id", str(GROUP), "group", "/".join(map(str, MEMBERS)))
    router.announce()


def test_an_answer_of_ip_that_is_cut_changes_nothing(lab):
    folder, cut = lab.dir / "bin", lab.dir / "cut"
    folder.mkdir()
    (folder / "ip").write_text(f"#!/bin/sh\ntest -e {cut} && echo '[{{' && exit\nexec {shutil.which('ip')} \"$@\"\n")
    (folder / "ip").chmod(0o755)
    router = Router(lab, {"PATH": f"{folder}:{os.environ['PATH']}"})
    router.announce()
    cut.touch()
    wait_until(lambda: f"{VIP} Expecting" in router.process.output(), SOON_S, "a complaint")
    assert router.is_resilient()
    cut.unlink()
    router.withdraw()
    router.announce()


@with_frr
def test_fl_160_groups_are_resilient_again_behind_frr_when_hosts_are(router):
    Frr(router.lab, "router", 0)
    for _ in range(ROUNDS):
        router.announce()
        router.withdraw()
        router.lab.ip("router", "nexthop", "del", "id", str(GROUP))  # as the kernel does it without a device
    router.announce()


@with_frr
def test_fl_161_next_hops_of_frrs_own_have_no_numbers_of_hosts_to_come(router):
    """It makes some for each link."""
    Frr(router.lab, "router", 0)
    router.announce()
    before = router.of_frr()
    for n in range(N_LINKS):
        router.lab.link(("router", f"r{n + 1}"), ("hosts", f"h{n + 1}"))
        router.lab.address("router", f"r{n + 1}", f"10.83.{n}.1/24")
    wait_until(lambda: len(router.of_frr() - before) >= N_LINKS, SOON_S, "FRR's next hops")
    assert not router.of_frr() & set(OURS), router.of_frr()
    router.withdraw()
    router.announce()
