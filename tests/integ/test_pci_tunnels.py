# SPDX-License-Identifier: Apache-2.0
"""Behind Linux as the L4 tier (l4_world.py): its own tunnels, of Debian's kernel in a virtual machine, whose card is on
the client's bridge (`tools/test pci`)."""

import json

import pytest

import vm
from l4_world import LEAST_SHARE, REQUESTS, STRANGER, STRANGER6, TIER, TIER6, URL, URL6, WAIT_S, Behind
from lab import OFFLOADS, wait_until
from testbed import VIP, VIP6

pytestmark = [pytest.mark.timeout(1800),
              pytest.mark.skipif(bool(vm.missing()), reason=vm.missing() or "-")]

MODULES = ("virtio_net", "ipip", "sit", "ip6_tunnel", "fou", "fou6")
GUE = "encap gue encap-sport auto encap-dport 6080"  # variant 0, UDP without a checksum
FOU = GUE.replace("gue", "fou")  # what GUE calls variant 1
CSUM = "encap-csum encap-udp6-csum"
# The kind of a link and its options, and what is asked for through it.
TUNNELS = [
    ("ipip", "", URL),
    ("sit", "", URL6),
    ("ip6tnl", "mode any encaplimit none", URL),
    ("ip6tnl", "mode any", URL6),  # with an option of RFC 2473 for the destination, eight bytes
    ("ipip", GUE, URL),
    ("ipip", f"{GUE} {CSUM}", URL),
    ("sit", GUE, URL6),
    ("ip6tnl", f"mode any encaplimit none {GUE}", URL6),
    ("ipip", FOU, URL),
    ("ip6tnl", f"mode any encaplimit none {FOU} {CSUM}", URL),
]
# The same of tunnels from a source of none.
FORGED = [("ipip", "", URL), ("ipip", GUE, URL), ("sit", "", URL6), ("ip6tnl", "mode any encaplimit none", URL)]
# What a router counts that had to tell a client of a packet that is too long.
TOO_LONG = "cat /proc/net/snmp6 | awk '/Icmp6OutPktTooBigs/ {print $2}'; nstat -az IpFragFails | awk '/Ip/ {print $2}'"


class BehindLinux(Behind):
    """guest: the tier's kernel, with a tunnel at a time."""

    def _add_tier(self):
        lab, middle = self.lab, self.bed.middle_of("client")
        self.guest = vm.Guest(lab, "virtio-net-pci", memory_mib=512)
        lab.ip(vm.NS, "addr", "flush", "dev", vm.TAP)
        lab.link((vm.NS, "n0"), (middle, "l4"))
        lab.ip(middle, "link", "set", "l4", "master", "bridge0")
        lab.bridge(vm.NS, "lan", vm.TAP, "n0")
        lab.set_offloads(vm.NS, vm.TAP, "off")
        self.guest.wait_for_boot()
        self.guest.load_drivers(*MODULES)
        # What Linux splits and sums in a card is not there when it is put into a tunnel.
        off = " ".join(f"{name} off" for name in OFFLOADS)
        self.guest.run(f"""
            ip link set $(basename {vm.SYS}/{vm.CARD}/virtio*/net/*) name l0
            ethtool -K l0 {off}
            sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
            ip addr add {TIER}/24 dev l0
            ip addr add {STRANGER}/24 dev l0
            ip addr add {TIER6}/64 dev l0 nodad
            ip addr add {STRANGER6}/64 dev l0 nodad
            ip link set l0 up""")

    def tunnel(self, kind, options, tier=TIER, tier6=TIER6):
        """In place of the one before."""
        ends = f"local {tier6} remote {VIP6}" if kind == "ip6tnl" else f"local {tier} remote {VIP}"
        self.guest.try_run("ip link del t0")
        self.guest.run(f"""
            ip link add t0 type {kind} {ends} {options}
            ip link set t0 up
            ip route add 10.9.0.0/24 dev t0
            ip route add fd09::/64 dev t0""")

    def sent(self):
        """Packets of the tunnel that it has now."""
        (link,) = json.loads(self.guest.run("ip -j -s link show dev t0"))
        assert link["stats64"]["tx"]["errors"] == 0, link
        return link["stats64"]["tx"]["packets"]

    def too_long(self):
        return [int(n) for n in self.guest.run(TOO_LONG).split()]


def at_rest(behind):
    wait_until(lambda: not any(w["proxy"]["clients"] for w in behind.bed.show_workers()), WAIT_S, "clients to be gone")


def test_requests_come_by_linuxs_own_tunnels_up_to_the_mtu(make_world):
    """FL-30, FL-31, FL-34, FL-39. No packet of a client's is too long for a tunnel."""
    behind = BehindLinux(make_world(bridges=True, ip6=True, workers=(0, 1)))
    body = behind.lab.dir / "body"
    body.write_bytes(b"b" * 100_000)
    for kind, options, url in TUNNELS:
        behind.tunnel(kind, options)
        before = behind.count("tunnel_packets")
        behind.load(url, REQUESTS // len(TUNNELS), body)
        at_rest(behind)
        taken, sent = behind.count("tunnel_packets") - before, behind.sent()
        print(f"{kind} {options}: {sent} packets")
        assert sent > 0 and taken >= sent * LEAST_SHARE, (kind, options, taken, sent)
    assert behind.too_long() == [0, 0]
    for name in ("tunnel_forged", "tunnel_malformed", "tunnel_checksum", "tunnel_not_vip"):
        assert behind.count(name) == 0, name
    for kind, options, url in FORGED:
        behind.tunnel(kind, options, STRANGER, STRANGER6)
        forged = behind.count("tunnel_forged")
        assert not behind.answers(url, 1)
        sent = behind.sent()
        assert sent > 0, kind
        wait_until(lambda n=forged + sent: behind.count("tunnel_forged") >= n, WAIT_S, "all of them counted")
