# SPDX-License-Identifier: Apache-2.0
"""Several gateways of a port: routers that die and return while calls are made through them (docs/fleet.md).

    far 10.90.0.2 -- r1 10.81.0.101 --+
                  -- r2 10.81.0.102 --+-- a switch, in `client` -- lb-c 10.81.0.10 shuntd -- backends
                  -- r3 10.81.0.103 --+

What is for shuntd comes by r3, which it does not know; what it answers goes by r1 and r2, its gateways. With IPv6 all
of it is there a second time: fd90::2, fd81::101, …
"""

import json
import re
import sys
import time

import pytest

import resources
from lab import command, wait_until
from lab_fixtures import check_end
from testbed import HERE, PORT, Testbed, VIP, VIP6

RPC = ("10.82.0.1", 9090)
ROUTERS = (1, 2, 3)
TARGETS = {4: f"{VIP}:{PORT}", 6: f"[{VIP6}]:{PORT}"}
GATEWAYS = "gateways: [10.81.0.101, 10.81.0.102, 'fd81::101', 'fd81::102']"
METRICS = "127.0.0.1:9464"
START_S = 45
NOTICE_S = 20  # bounds, not what is measured
VLAN = 7
STRAYS = 5  # frames of a second


class Net:
    """A Testbed whose port 0 has gateways. vlan: its frames have that tag, put in by a switch between."""

    def __init__(self, lab, settings=GATEWAYS, vlan=None, workers=None):
        arguments = {"workers": workers} if workers else {}
        self.lab, self.bed = lab, Testbed(lab, ip6=True, faultlinks=("client",) if vlan else (), **arguments)
        self.bed.port_settings[0] = [settings, *([f"vlan: {vlan}"] if vlan else [])]
        self.bed.settings = f'metrics: {{listen: "{METRICS}"}}\n'
        self.loads = []
        if vlan:
            lab.start(self.bed.middle_of("client"), "vlan", [sys.executable, HERE / "vlan_agent.py", str(vlan)])
        self._make_switch()
        for n in ROUTERS:
            self._add_router(n)
        for address in ("10.90.0.2/32", "fd90::2/128"):
            lab.ip("far", "addr", "add", address, "dev", "lo")
        lab.ip("far", "route", "add", "10.81.0.0/24", "via", "10.91.3.1", "src", "10.90.0.2")
        lab.ip("far", "-6", "route", "add", "fd81::/64", "via", "fd91:3::1", "src", "fd90::2")
        self._serve()

    def _make_switch(self):
        self.lab.ip("client", "addr", "flush", "dev", "c0")
        self.lab.bridge("client", "lan", "c0")
        self.lab.address("client", "lan", "10.81.0.1/24")
        self.lab.enable_ip6("client", "lan")
        self.lab.ip("client", "addr", "add", "fd81::1/64", "dev", "lan", "nodad")

    def _add_router(self, n):
        lab, ns = self.lab, f"r{n}"
        lab.link((ns, "lan"), ("client", f"p{n}"))
        lab.ip("client", "link", "set", f"p{n}", "master", "lan")
        lab.link((ns, "far"), ("far", ns))
        off = [f"net.ipv4.conf.{name}.rp_filter=0" for name in ("all", "lan", "far")]
        lab.exec(ns, ["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", *off])
        lab.exec("far", ["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", f"net.ipv4.conf.{ns}.rp_filter=0"])
        for where, interface, v4, v6 in ((ns, "lan", f"10.81.0.10{n}/24", f"fd81::10{n}/64"),
                                         (ns, "far", f"10.91.{n}.1/24", f"fd91:{n}::1/64"),
                                         ("far", ns, f"10.91.{n}.2/24", f"fd91:{n}::2/64")):
            lab.enable_ip6(where, interface)
            lab.address(where, interface, v4)
            lab.ip(where, "addr", "add", v6, "dev", interface, "nodad")
        lab.ip(ns, "route", "add", "10.90.0.2/32", "via", f"10.91.{n}.2")
        lab.ip(ns, "-6", "route", "add", "fd90::2/128", "via", f"fd91:{n}::2")

    def _serve(self):
        bed = self.bed
        bed.start_grpc_backend("rpc", *RPC)
        bed.wait_connect("backends", *RPC)
        resources.Folder(bed.xds_folder).set(
            resources.cluster("rpc"), resources.endpoints("rpc", RPC),
            resources.route_config("routes", resources.virtual_host("all", ["*"], resources.route("/", "rpc"))),
            resources.listener("web", "routes"))
        bed.start_xds()
        bed.start_daemon()

    # -- the load

    def start_load(self, family):
        """Calls on 32 connections, each with its own way, and streams."""
        stop = self.lab.dir / f"stop-{family}"
        load = self.lab.start("far", f"calls-{family}", [
            sys.executable, HERE / "fleet_calls.py", TARGETS[family], stop, 32, 160, 4, 2])
        wait_until(lambda: "ready" in load.output(), START_S, "the load")
        self.loads.append((load, stop))

    def end_loads(self):
        """No call and no stream failed."""
        reports = []
        for load, stop in self.loads:
            stop.touch()
            assert load.wait(START_S) == 0, load.output()
            reports.append(json.loads(load.output().splitlines()[-1]))
            assert reports[-1]["failed"] == [] and reports[-1]["calls"] > 100, reports[-1]
        print("calls", [r["calls"] for r in reports], "longest", [round(r["longest_s"], 2) for r in reports])

    def carried(self):
        """Frames that each router has sent to the far side."""
        path = "/sys/class/net/far/statistics/tx_packets"
        return {n: int(self.lab.exec(f"r{n}", ["cat", path]).stdout) for n in ROUTERS}

    def carriers(self, seconds=1.0):
        """The routers by which answers go: those that carry more than a stray neighbor discovery."""
        before = self.carried()
        time.sleep(seconds)
        return {n for n, frames in self.carried().items() if frames - before[n] > STRAYS and n != 3}

    def wait_carried(self, *routers):
        """Until these carry, and no other: as chance has it, one of them few of the connections."""
        wait_until(lambda: self.carriers() == set(routers), NOTICE_S, f"{routers} carry")

    # -- routers that die

    def cut(self, n):
        """The link is down, at both its ends."""
        self.lab.ip("client", "link", "set", f"p{n}", "down")

    def join(self, n):
        self.lab.ip("client", "link", "set", f"p{n}", "up")

    def silence(self, n):
        """All links are up, and nothing passes."""
        self.lab.ip("client", "link", "set", f"p{n}", "nomaster")

    def unsilence(self, n):
        self.lab.ip("client", "link", "set", f"p{n}", "master", "lan")

    # -- what shuntd says

    def states(self):
        """{"10.81.0.101": "up", …}"""
        return dict(one.split(" ") for one in self.bed.show("ports")[0]["gateways"].split(", "))

    def wait_for(self, *up, families=(4, 6)):
        """Until just these routers are up."""
        prefixes = {4: "10.81.0.10", 6: "fd81::10"}
        wanted = {prefixes[f] + str(n): "up" if n in up else "down" for n in (1, 2) for f in families}
        wait_until(lambda: wanted.items() <= self.states().items(), NOTICE_S, f"gateways {wanted}")

    def metric(self, name):
        """{gateway: value}"""
        text = self.lab.exec("lb", [sys.executable, "-c", "import urllib.request as u; "
                                    f"print(u.urlopen('http://{METRICS}/metrics').read().decode())"]).stdout
        return {gateway: float(value) for gateway, value in
                re.findall(rf'^{name}{{port="0",gateway="([^"]*)"}} (\S+)', text, re.MULTILINE)}

    def events(self, msg):
        """The gateways of such lines of `show events`."""
        return re.findall(rf'msg="{msg}" port=0 gateway=(\S+)', self.bed.daemon.output())


@pytest.fixture(name="make_net")
def fixture_make_net(lab):
    nets = []

    def make(**arguments):
        nets.append(Net(lab, **arguments))
        return nets[-1]
    yield make
    for net in nets:
        check_end(net.bed)


def die_and_return(net, number, die, live):
    """One of both, while the other one carries all."""
    other = 3 - number
    die(number)
    net.wait_for(other)
    net.wait_carried(other)
    live(number)
    net.wait_for(1, 2)
    net.wait_carried(1, 2)


@pytest.mark.timeout(180)
def test_fl_60_64_gateways_die_and_return_and_no_call_fails(make_net):
    """Each of them alone, by its link and silently, then both at once."""
    net = make_net()
    net.wait_for(1, 2)
    net.start_load(4)
    net.start_load(6)
    net.wait_carried(1, 2)

    die_and_return(net, 1, net.cut, net.join)
    die_and_return(net, 2, net.silence, net.unsilence)

    net.silence(1)
    net.silence(2)
    net.wait_for()
    time.sleep(1)
    net.unsilence(1)
    net.unsilence(2)
    net.wait_for(1, 2)
    net.wait_carried(1, 2)
    net.end_loads()


@pytest.mark.timeout(120)
def test_fl_60_62_likewise_in_a_vlan(make_net):
    net = make_net(vlan=VLAN)
    net.wait_for(1, 2)
    net.start_load(4)
    net.wait_carried(1, 2)
    die_and_return(net, 1, net.silence, net.unsilence)
    net.end_loads()


@pytest.mark.timeout(120)
def test_fl_62_65_the_second_stands_by_for_one_that_does_not_answer_arp(make_net):
    """It forwards still, which nobody asks."""
    net = make_net(settings=GATEWAYS + "\n    gateway_choice: first\n    gateway_watch: {interval_ms: 100, missed: 2}")
    net.wait_for(1, 2)
    net.start_load(4)
    net.wait_carried(1)
    net.lab.ip("r1", "link", "set", "lan", "arp", "off")
    net.wait_for(2, families=(4,))
    net.wait_carried(2)
    net.lab.ip("r1", "link", "set", "lan", "arp", "on")
    net.wait_for(1, 2, families=(4,))
    net.wait_carried(1)
    net.end_loads()


@pytest.mark.timeout(120)
def test_fl_67_all_workers_leave_a_gateway_that_died(make_net):
    net = make_net(workers=(0, 1))
    net.wait_for(1, 2)
    net.start_load(4)
    net.wait_carried(1, 2)
    wait_until(lambda: all(sum(worker["ended"].values()) for worker in net.bed.show_workers()), NOTICE_S, "both serve")
    net.silence(2)
    net.wait_for(1)
    net.wait_carried(1)
    asks = [worker["net"]["gateway_asks"] for worker in net.bed.show_workers()]
    assert asks[0] and not asks[1], asks
    net.end_loads()


@pytest.mark.timeout(120)
def test_fl_68_operators_are_told_of_gateways(make_net):
    net = make_net()
    net.wait_for(1, 2)
    up = {"10.81.0.101": 1, "10.81.0.102": 1, "fd81::101": 1, "fd81::102": 1}
    assert net.metric("shunt_gateway_up") == up
    assert sorted(net.events("gateway up")) == sorted(up)
    net.silence(2)
    net.wait_for(1)
    assert net.metric("shunt_gateway_up") == {**up, "10.81.0.102": 0, "fd81::102": 0}
    assert net.metric("shunt_gateway_downs_total")["fd81::102"] == 1
    assert sorted(net.events("gateway down")) == ["10.81.0.102", "fd81::102"]
    rows = {row["address"]: row["watch"] for row in net.bed.show("neighbors")["neighbors"] if row["gateway"]}
    assert rows == net.states(), rows
    found = [row for row in json.loads(command(net.bed.shuntctl_argv("--json", "doctor"), check=False).stdout)
             ["data"]["findings"] if row["check"] == "gateway"]
    assert [row["severity"] for row in found] == ["warning"] * 2, found
    assert "10.81.0.102" in str(found) and "fd81::102" in str(found), found
    net.silence(1)
    net.wait_for()
    assert "up=0" in net.bed.daemon.output()
