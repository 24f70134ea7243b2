# SPDX-License-Identifier: Apache-2.0
"""A Testbed behind an L4 tier: clients' packets come within those of a host that the VIPs are routed to, and answers go
to them directly.

    client 10.81.0.1 --+-- mid-client (a bridge) -- shuntd 10.81.0.10
    l4 10.81.0.5    ---+
"""

import json
import os
import sys

from lab import command, wait_until
from testbed import BUILD, EXAMPLE, HERE, PORT, START_TIMEOUT_S, VIP

TIER, TIER6 = "10.81.0.5", "fd81::5"
STRANGER, STRANGER6 = "10.81.0.6", "fd81::6"  # of no tunnel
HOP = "10.81.0.7"
SECOND = "10.83.0.2"  # of BehindTwo
SERVED, SERVED6 = "10.9.0.1", "fd09::1"
URL, URL6 = f"http://{SERVED}:{PORT}", f"http://[{SERVED6}]:{PORT}"
PREFIXES = {"10.9.0.0/24": TIER, "fd09::/64": TIER6}  # of the VIPs, and who has them
MTU = 1500
# What CI sends in sum; more by SHUNT_TUNNEL_REQUESTS=100000.
REQUESTS = int(os.environ.get("SHUNT_TUNNEL_REQUESTS", "10000"))
WAIT_S = 30
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
                         f"  - {{kind: gue, from: [{TIER}/32, '{TIER6}/128'], hops: [{HOP}/32, {SECOND}/32]}}\n")
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
        wait_until(lambda: not any(w["proxy"]["clients"] for w in self.bed.show_workers()), WAIT_S,
                   "its clients are gone")
        tier.stop()
        return json.loads(tier.output().splitlines()[-1])

    def count(self, name):
        return sum(worker["net"][name] for worker in self.bed.show_workers())

    def answers(self, url, timeout_s):
        argv = ["curl", "-s", "-m", str(timeout_s), "--http2-prior-knowledge", f"{url}/mark"]
        return bool(self.lab.exec("client", argv, check=False).stdout)


SECOND_CONFIG = """\
eal: [--in-memory, --no-huge, -m, "256"]
workers: [0]
idle: backoff
limits: {{connections: 1024, buffers_mib: 16}}
ports: [{{device: "net_af_packet0,iface=p0", addresses: [{ip}/24], gateway: 10.83.0.1}}]
vips: [{{prefix: 10.9.0.0/24, arp: false}}]
tunnels: [{{kind: gue, from: [{tier}/32, {first}/32]}}]
frontends: [{{name: l4, address: {served}, port: {port}, target: web}}]
stats: {{socket: {socket}, mode: "0660"}}
"""


class BehindTwo(Behind):
    """With a second host beyond the tier's, which is its router to all others, and to which the first one sends on.

        first 10.81.0.10 -- l4 10.81.0.5, 10.83.0.1 -- second 10.83.0.2
                            l4 10.84.0.1 -- 10.84.0.2 backends
    """

    def _add_tier(self):
        super()._add_tier()
        lab, bed = self.lab, self.bed
        lab.link(("l4", "s0"), ("second", "p0"))
        lab.link(("l4", "k0"), ("backends", "k0"))
        lab.address("l4", "s0", "10.83.0.1/24")
        lab.address("l4", "k0", "10.84.0.1/24")
        lab.address("backends", "k0", "10.84.0.2/24")
        lab.ip("l4", "route", "add", "10.82.0.0/16", "via", "10.84.0.2")
        lab.ip("backends", "route", "add", "10.83.0.0/24", "via", "10.84.0.1")
        lab.exec("backends", ["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        bed.port_settings = {0: [f"gateway: {TIER}"]}
        self.world.set_weights(0, 100)  # blue has IPv6, which the second host has not
        self.socket = lab.dir / "second.sock"
        path = lab.dir / "second.yaml"
        path.write_text(SECOND_CONFIG.format(ip=SECOND, tier=TIER, first=VIP, served=SERVED, port=PORT,
                                             socket=self.socket))
        bed.start_xds(ns="second")
        self.second = lab.start("second", "second", [BUILD / "ctrl" / "shuntd", "-c", path],
                                env={"GRPC_XDS_BOOTSTRAP": str(EXAMPLE / "bootstrap.json")}, cpu=None)
        wait_until(self._second_serves, START_TIMEOUT_S, "the second host")

    def _ask_second(self, what):
        done = command([BUILD / "tools" / "shuntctl", "--socket", self.socket, "--json", "show", what], check=False)
        return json.loads(done.stdout)["data"] if done.returncode == 0 else {}

    def _second_serves(self):
        return self._ask_second("info").get("state") == "ready"

    def second_count(self, name, group="net"):
        return sum(worker[group][name] for worker in self._ask_second("workers").values())

    def narrow(self, mtu):
        """The router's way to the second host."""
        self.lab.ip("l4", "route", "add", f"{SECOND}/32", "dev", "s0", "mtu", str(mtu))

    def start_upload(self, size):
        """Over one connection, for some seconds; it ends with the answer's status and what was sent."""
        body = self.lab.dir / "upload"
        body.write_bytes(b"u" * size)
        argv = ["curl", "-s", "--http2-prior-knowledge", "--limit-rate", str(size // 4), "--data-binary", f"@{body}",
                "-o", "/dev/null", "-w", "%{http_code} %{size_upload}", f"{URL}/mark"]
        return self.lab.start("client", "upload", argv)
