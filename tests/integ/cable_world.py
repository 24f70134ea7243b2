# SPDX-License-Identifier: Apache-2.0
"""shuntd with a port that is a bond of two interfaces, active-backup, to a switch: cables that can be pulled out.

    client, and a switch `lan` 10.81.0.1 -- c0 -- lb-c --+
                                         -- c1 -- lb-d --+-- bond 10.81.0.10 shuntd -- backends
"""

import json
import re
import sys

import resources
from lab import wait_until
from testbed import HERE, PORT, Testbed, VIP

RPC = ("10.82.0.1", 9090)
MEMBERS = ("lb-c", "lb-d")
FAR = {"lb-c": "c0", "lb-d": "c1"}
DEVICE = "net_af_packet{n},iface={interface}"
METRICS = "127.0.0.1:9464"
START_S = 45
NOTICE_S = 20  # a bound, not what is measured
VLAN = 7
BLUE = "10.83.0.10"  # shuntd's address in a second VLAN, in which `blue` is
BLUE_VLAN = 9
KERNEL = "shunt0"


def bond_of(members):
    """As shunt.yaml has it; a device's number is its interface's."""
    devices = (f"'{DEVICE.format(n=MEMBERS.index(name) + 2, interface=name)}'" for name in members)
    return f"bond: {{mode: active-backup, members: [{', '.join(devices)}]}}"


class BondBed(Testbed):
    """A Testbed whose port 0 is a bond."""

    bond = bond_of(MEMBERS)  # of the next process

    def _connect(self, far, far_if, near_if, bridged, faulted):
        super()._connect(far, far_if, near_if, bridged, faulted)
        if far == "client":
            self.lab.link((far, "c1"), ("lb", "lb-d"), mtu=self.mtu, queues=len(self.workers))

    def config_text(self):
        return super().config_text().replace("device: " + self._device(0, "lb-c"), self.bond)


class Net:
    """more: of shunt.yaml, settings: of its port, device: in place of the bond."""

    def __init__(self, lab, vlan=None, workers=None, settings=(), blue=False, more="", device=""):
        self.lab, self.bed = lab, BondBed(lab, **({"workers": workers} if workers else {}))
        self.bed.settings = f'metrics: {{listen: "{METRICS}"}}\n{more}'
        self.bed.port_settings[0] = list(settings)
        self.bed.bond = device or self.bed.bond
        self.load = None
        self.ways = []  # of the switch that gives frames their tags
        if blue:
            self._add_blue()
        self._make_switch(vlan)
        self.bed.start_grpc_backend("rpc", *RPC)
        self.bed.wait_connect("backends", *RPC)
        resources.Folder(self.bed.xds_folder).set(
            resources.cluster("rpc"), resources.endpoints("rpc", RPC),
            resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "rpc"))),
            resources.listener("web", "routes"))
        self.bed.start_xds()
        self.bed.start_daemon()

    def _make_switch(self, vlan):
        self.lab.ip("client", "addr", "flush", "dev", "c0")
        self.lab.bridge("client", "lan", *FAR.values())
        if vlan:
            self._put_in_vlan(vlan)
        self.lab.address("client", "inner" if vlan else "lan", "10.81.0.1/24")

    def _add_blue(self):
        self.bed.more_ports = [
            f"{{{bond_of(MEMBERS)}, vlan: {BLUE_VLAN}, addresses: [{BLUE}/24], kernel: {{interface: {KERNEL}}}}}"]
        self.bed.more_frontends = [f"{{name: blue, address: {BLUE}, port: {PORT}, target: web}}"]
        self.lab.link(("blue", "c0"), ("client", "blue"))
        self.lab.address("blue", "c0", "10.83.0.1/24")
        self.ways.append(f"blue={BLUE_VLAN}")

    def _put_in_vlan(self, vlan):
        """The client is behind a second switch, which gives its frames this tag."""
        self.bed.port_settings[0].append(f"vlan: {vlan}")
        self.lab.link(("client", "inner"), ("client", "outer"))
        self.lab.link(("client", "near"), ("client", "p0"))
        self.lab.ip("client", "link", "set", "p0", "master", "lan")
        self.lab.start("client", "vlan", [
            sys.executable, HERE / "trunk_agent.py", "near", "0", f"outer={vlan}", *self.ways])

    # -- cables

    def pull(self, member):
        self.lab.ip("client", "link", "set", FAR[member], "down")

    def put_back(self, member):
        self.lab.ip("client", "link", "set", FAR[member], "up")

    def port(self):
        return self.bed.show("ports")[0]

    def states(self):
        return {re.search("iface=([^,]+)", m["device"])[1]: m["state"] for m in self.port()["bond_members"]}

    def wait_for(self, timeout=NOTICE_S, **states):
        """lb_c="active", …"""
        wanted = {name.replace("_", "-"): state for name, state in states.items()}
        wait_until(lambda: self.states() == wanted, timeout, f"members that are {wanted}", interval=0.1)

    def announcements(self):
        rules = json.loads(self.lab.exec("client", ["nft", "-j", "list", "counters"]).stdout)["nftables"]
        return next(r["counter"]["packets"] for r in rules if "counter" in r)

    # -- the load

    def start_load(self):
        """Calls on 16 connections, 80 a second, and streams."""
        stop = self.lab.dir / "stop"
        load = self.lab.start("client", "calls", [
            sys.executable, HERE / "fleet_calls.py", f"{VIP}:{PORT}", stop, 16, 80, 4, 2])
        wait_until(lambda: "ready" in load.output(), START_S, "the load")
        self.load = load, stop

    def end_load(self):
        """No call and no stream failed."""
        load, stop = self.load
        stop.touch()
        assert load.wait(START_S) == 0, load.output()
        report = json.loads(load.output().splitlines()[-1])
        assert report["failed"] == [] and report["calls"] > 20, report
        print("calls", report["calls"], "longest", round(report["longest_s"], 2))
