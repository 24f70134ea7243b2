# SPDX-License-Identifier: Apache-2.0
"""A Testbed behind an L4 tier: clients' packets come within those of a host that the VIPs are routed to, and answers go
to them directly.

    client 10.81.0.1 --+-- mid-client (a bridge) -- shuntd 10.81.0.10
    l4 10.81.0.5    ---+
"""

import json
import os
import sys

from lab import wait_until
from testbed import HERE, PORT

TIER, TIER6 = "10.81.0.5", "fd81::5"
STRANGER = "10.81.0.6"  # of no tunnel
HOP = "10.81.0.7"
SERVED, SERVED6 = "10.9.0.1", "fd09::1"
URL, URL6 = f"http://{SERVED}:{PORT}", f"http://[{SERVED6}]:{PORT}"
PREFIXES = {"10.9.0.0/24": TIER, "fd09::/64": TIER6}  # of the VIPs, and who has them
MTU = 1500
# What CI sends in sum; more by SHUNT_TUNNEL_REQUESTS=100000.
REQUESTS = int(os.environ.get("SHUNT_TUNNEL_REQUESTS", "10000"))
WAIT_S = 10
# Of what the tier sent, that Shunt has seen: a busy machine drops some, and clients send it again.
LEAST_SHARE = 0.99


class Behind:
    """The standard world on a bridge with a tier beside it."""

    def __init__(self, world):
        self.world, self.bed, self.lab = world, world.bed, world.bed.lab
        self._add_tier()
        for prefix, tier in PREFIXES.items():
            self.lab.ip("client", "route", "add", prefix, "via", tier)
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
        for prefix in PREFIXES:
            lab.ip("l4", "route", "add", prefix, "dev", "tun0")

    def load(self, url, requests, body):
        """So many, and a few with a body."""
        for amount in ({"requests": requests, "clients": 16, "streams": 8},
                       {"requests": 20, "clients": 4, "streams": 1, "body": body}):
            report = self.bed.run_h2load(url=url, **amount)
            assert report.perfect, (url, report)

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
