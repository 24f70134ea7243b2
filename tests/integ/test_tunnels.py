# SPDX-License-Identifier: Apache-2.0
"""Behind an L4 tier: clients' packets come within those of a host that the VIPs are routed to, and answers go to them
directly.

    client 10.81.0.1 --+-- mid-client (a bridge) -- shuntd 10.81.0.10
    l4 10.81.0.5    ---+
"""

import json
import os
import sys

import pytest

from lab import wait_until
from testbed import HERE, PORT, VIP, VIP6

TIER, TIER6 = "10.81.0.5", "fd81::5"
STRANGER = "10.81.0.6"  # of no tunnel
HOP = "10.81.0.7"
SERVED, SERVED6 = "10.9.0.1", "fd09::1"
URL, URL6 = f"http://{SERVED}:{PORT}", f"http://[{SERVED6}]:{PORT}"
MTU = 1500
# What CI sends in sum; more by SHUNT_TUNNEL_REQUESTS=100000.
REQUESTS = int(os.environ.get("SHUNT_TUNNEL_REQUESTS", "10000"))
WAIT_S = 10
# Of what the tier sent, that Shunt has seen: a busy machine drops some, and clients send it again.
LEAST_SHARE = 0.99
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


class Behind:
    """The standard world on a bridge with a tier beside it."""

    def __init__(self, world):
        self.world, self.bed, self.lab = world, world.bed, world.bed.lab
        self._add_tier()
        bed = self.bed
        bed.settings += "vips: [{prefix: 10.9.0.0/24, arp: false}, {prefix: 'fd09::/64', arp: false}]\n"
        bed.settings += ("tunnels:\n"
                         f"  - {{kind: ipip, from: [{TIER}/32, '{TIER6}/128']}}\n"
                         f"  - {{kind: gue, from: [{TIER}/32, '{TIER6}/128'], hops: [{HOP}/32]}}\n")
        bed.more_frontends = tuple(f"{{name: {name}, address: '{ip}', port: {PORT}, target: web}}"
                                   for name, ip in (("l4", SERVED), ("l46", SERVED6)))
        world.start()

    def _add_tier(self):
        lab, middle = self.lab, self.bed.middle_of("client")
        lab.link(("l4", "l0"), (middle, "l4"))
        lab.ip(middle, "link", "set", "l4", "master", "bridge0")
        lab.ip("l4", "tuntap", "add", "tun0", "mode", "tun")
        for interface in ("l0", "tun0"):
            lab.enable_ip6("l4", interface)
        lab.exec("l4", ["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])
        lab.ip("l4", "link", "set", "tun0", "mtu", str(MTU), "up")
        lab.address("l4", "l0", *(f"{ip}/24" for ip in (TIER, STRANGER, HOP)))
        lab.ip("l4", "addr", "add", f"{TIER6}/64", "dev", "l0", "nodad")
        for prefix, tier in (("10.9.0.0/24", TIER), ("fd09::/64", TIER6)):
            lab.ip("l4", "route", "add", prefix, "dev", "tun0")
            lab.ip("client", "route", "add", prefix, "via", tier)

    def start(self, *words):
        """The tier's process."""
        name = f"tier-{len(self.lab.processes)}"
        tier = self.lab.start("l4", name, [sys.executable, HERE / "l4_agent.py", *words])
        wait_until(lambda: "ready" in tier.output() or not tier.alive(), WAIT_S, "the tier")
        return tier

    def stop(self, tier):
        """What it has sent. A client's goodbye may be on its way, and goes by the tier."""
        wait_until(lambda: not any(w["proxy"]["clients"] for w in self.bed.show_workers()), 20, "its clients are gone")
        tier.stop()
        return json.loads(tier.output().splitlines()[-1])

    def count(self, name):
        return sum(worker["net"][name] for worker in self.bed.show_workers())

    def answers(self, url, timeout_s):
        argv = ["curl", "-s", "-m", str(timeout_s), "--http2-prior-knowledge", f"{url}/mark"]
        return bool(self.lab.exec("client", argv, check=False).stdout)


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
        report = behind.bed.run_h2load(requests=REQUESTS // len(TUNNELS), clients=16, streams=8, url=url)
        assert report.perfect, (kind, source, url, report)
        report = behind.bed.run_h2load(requests=20, clients=4, streams=1, url=url, body=body)
        assert report.perfect, (kind, source, url, report)
        sent = behind.stop(tier)
        assert sent["too_long"] == 0 and sent["longest"] == MTU, (kind, source, url, sent)
        assert behind.count("tunnel_packets") - before >= sent["sent"] * LEAST_SHARE
    for name in ("tunnel_forged", "tunnel_malformed", "tunnel_checksum", "tunnel_not_vip", "tunnel_relayed"):
        assert behind.count(name) == 0, name
    assert all(worker["tcp"]["accepted"] for worker in behind.bed.show_workers())


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
