# SPDX-License-Identifier: Apache-2.0
"""Several VLANs of one device (docs/config.md#ports): a switch between them and shuntd's trunk.

    far 10.90.0.2 -- client 10.81.0.1 -- VLAN 100 --+
                                                    +-- lb-c (shuntd): port 0 10.81.0.10, port 2 10.83.0.10
                  -- blue   10.83.0.1 -- VLAN 200 --+
"""

import json
import re
import sys

import pytest

import h2load
import load_agent
from lab import command, wait_until
from lab_fixtures import check_end
from testbed import HERE, PORT, SUPPORT_CPU, Testbed

BODY = 1 << 20
STRAYS = 5
TIMEOUT_S = 20
METRICS = "127.0.0.1:9464"
LB = "net_af_packet0,iface=lb-c"
CLIENT, BLUE = 0, 2  # in shunt.yaml
FAR = "10.90.0.2"
N = 120  # requests, ten a second: longer than a gateway takes to be missed


class Trunk:
    """A Testbed whose device lb-c has the VLANs of `client` and `blue`; the first may be 0: without a tag. same: both
    have the same subnets, and the same hosts but for shuntd. gateways: those two hosts."""

    def __init__(self, lab, vlans=(100, 200), workers=None, same=False, gateways=False):
        self.lab, self.vlans = lab, vlans
        net, host = (81, 20) if same else (83, 10)
        self.ips = {"client": "10.81.0.10", "blue": f"10.{net}.0.{host}"}
        self.ips6 = {"client": "fd81::10", "blue": f"fd{net}::{host}"}
        arguments = {"workers": workers} if workers else {}
        self.bed = bed = Testbed(lab, ip6=True, faultlinks=("client",), **arguments)
        bed.port_settings[CLIENT] = [f"vlan: {vlans[0]}", *(["gateway: 10.81.0.1"] if gateways else [])]
        bed.more_ports = [f"{{device: '{LB}', vlan: {vlans[1]}, mtu: 1400, "
                          f"addresses: ['{self.ips['blue']}/24', '{self.ips6['blue']}/64']"
                          f"{f', gateway: 10.{net}.0.1' if gateways else ''}}}"]
        bed.more_frontends = [f"{{name: {name}, address: '{ip}', port: {PORT}, target: web}}"
                              for name, ip in (("blue", self.ips["blue"]), ("blue6", self.ips6["blue"]))]
        lab.link(("blue", "c0"), (bed.middle_of("client"), "blue"))
        lab.address("blue", "c0", f"10.{net}.0.1/24")
        lab.enable_ip6("blue", "c0")
        lab.ip("blue", "addr", "add", f"fd{net}::1/64", "dev", "c0", "nodad")
        self.start_switch(0)

    def start_switch(self, strays):
        self.switch = self.lab.start(self.bed.middle_of("client"), "trunk", [
            sys.executable, HERE / "trunk_agent.py", "near", str(strays), f"far={self.vlans[0]}",
            f"blue={self.vlans[1]}"])

    def serve(self):
        self.bed.start_http_backend("one", "10.82.0.1", BODY)
        load_agent.serve_echo(self.bed, ("10.82.0.1", 8080))

    def load(self, count=24):
        """Bodies of full frames, up and down, in both VLANs at the same time."""
        upload = self.lab.dir / "upload"
        upload.write_bytes(b"u" * BODY)
        loads = {ns: self.start_load(ns, ns, requests=count, clients=2, streams=4, body=upload) for ns in self.ips}
        for ns, process in loads.items():
            report = self.bed.h2load_report(process)
            assert report.perfect and report.payload == count * BODY, (ns, report)

    def start_load(self, ns, vlan, **amount):
        """From that namespace to the address in the VLAN of the other."""
        argv = h2load.arguments(f"http://{self.ips[vlan]}:{PORT}{h2load.MARK}", **amount)
        return self.lab.start(ns, f"load-{vlan}-{len(self.lab.processes)}", ["taskset", "-c", str(SUPPORT_CPU), *argv])

    def wait_served(self):
        for ns, ip in self.ips.items():
            self.bed.wait_connect(ns, ip, PORT, self.bed.daemon)

    def ports(self):
        ports = self.bed.show("ports")
        return ports[CLIENT], ports[BLUE]

    def wait_link(self, link):
        wait_until(lambda: [p["link"] for p in self.ports()] == [link] * 2, TIMEOUT_S, f"links {link}")


@pytest.fixture(name="make_trunk")
def fixture_make_trunk(lab):
    trunks = []

    def make(**arguments):
        trunks.append(Trunk(lab, **arguments))
        return trunks[-1]
    yield make
    for trunk in trunks:
        check_end(trunk.bed)


def ping(trunk, ns, *targets):
    for target in targets:
        trunk.lab.exec(ns, ["ping", "-c", "1", "-W", "20", target])


@pytest.mark.timeout(180)
@pytest.mark.parametrize("vlans", ((100, 200), (0, 200)))
def test_net_40_vlans_of_a_device_are_ports_of_their_own(make_trunk, vlans):
    trunk = make_trunk(vlans=vlans)
    trunk.serve()
    trunk.wait_served()
    trunk.load()
    ping(trunk, "client", "10.81.0.10", "fd81::10")
    ping(trunk, "blue", "10.83.0.10", "fd83::10")
    for port, vlan, mtu in zip(trunk.ports(), vlans, (1500, 1400)):
        assert (port["vlan"], port["mtu"]) == (vlan, mtu), port
        assert port["rx_bytes"] > 24 * BODY and port["tx_bytes"] > 24 * BODY and not port["tx_dropped"], port
        assert port["device"] == LB and port["mac"] == trunk.ports()[0]["mac"], port
        assert not port["rx_other_vlan"], port
    neighbors = {(row["address"], row["port"]) for row in trunk.bed.show("neighbors")["neighbors"]}
    assert {("10.81.0.1", CLIENT), ("10.83.0.1", BLUE)} <= neighbors, neighbors
    # One link's address is none of the other's neighbors.
    assert ("10.83.0.1", CLIENT) not in neighbors and ("10.81.0.1", BLUE) not in neighbors, neighbors


@pytest.mark.timeout(180)
def test_net_40_likewise_of_two_workers(make_trunk):
    trunk = make_trunk(workers=(0, 1))
    trunk.serve()
    trunk.wait_served()
    trunk.load()
    for ns in trunk.ips:  # a few connections may all be one worker's
        assert trunk.bed.h2load_report(trunk.start_load(ns, ns, requests=64, clients=32, streams=1)).perfect
    assert all(port["queues"] == 2 for port in trunk.ports())
    assert all(sum(worker["ended"].values()) for worker in trunk.bed.show_workers())


@pytest.mark.timeout(120)
def test_net_41_frames_of_other_vlans_are_dropped_and_counted(make_trunk):
    trunk = make_trunk()
    trunk.serve()
    trunk.wait_served()
    trunk.switch.stop()
    trunk.start_switch(STRAYS)
    wait_until(lambda: trunk.ports()[0]["rx_other_vlan"] == STRAYS, TIMEOUT_S, "strays")
    trunk.load(count=2)
    assert [port["rx_other_vlan"] for port in trunk.ports()] == [STRAYS, 0]
    assert not sum(worker["net"]["eth_vlan"] for worker in trunk.bed.show_workers())


@pytest.mark.timeout(180)
def test_net_43_the_link_and_the_device_are_those_of_all_vlans(make_trunk):
    """The link goes, then the interface, under connections that stay."""
    trunk = make_trunk()
    trunk.serve()
    trunk.wait_served()
    middle = trunk.bed.middle_of("client")
    trunk.switch.stop()  # it minds links that go down
    trunk.lab.ip(middle, "link", "set", "near", "down")
    trunk.wait_link("down")
    states = {f["name"]: (f["state"], f["error"]) for f in trunk.bed.show("info")["frontends"]}
    assert states["web"] == ("down", "port 0: there is no link"), states
    assert states["blue"] == ("down", "port 2: there is no link"), states
    trunk.lab.ip(middle, "link", "set", "near", "up")
    trunk.start_switch(0)
    trunk.wait_link("up")
    trunk.load(count=2)

    trunk.switch.stop()
    trunk.lab.ip("lb", "link", "delete", "lb-c")
    trunk.wait_link("gone")
    trunk.lab.link((middle, "near"), ("lb", "lb-c"))
    trunk.start_switch(0)
    trunk.wait_link("up")
    trunk.wait_served()
    trunk.load(count=2)
    assert [port["losses"] for port in trunk.ports()] == [1, 1]
    output = trunk.bed.daemon.output()
    assert output.count('msg="device gone" port=0') == 1 and 'msg="device gone" port=2' not in output, output


@pytest.mark.timeout(180)
@pytest.mark.parametrize("workers", ((1,), (0, 1)))
def test_net_42_two_vlans_may_have_the_same_hosts(make_trunk, workers):
    """Their addresses are the same in both, of clients as well; shuntd's are not."""
    trunk = make_trunk(same=True, workers=workers)
    trunk.serve()
    trunk.wait_served()
    trunk.load()
    for ns in trunk.ips:
        ping(trunk, ns, trunk.ips[ns], trunk.ips6[ns])
    for port in trunk.ports():
        assert port["rx_bytes"] > 24 * BODY and port["tx_bytes"] > 24 * BODY and not port["tx_dropped"], port
    rows = {(row["address"], row["port"]): row for row in trunk.bed.show("neighbors")["neighbors"]}
    macs = [rows["10.81.0.1", port]["mac"] for port in (CLIENT, BLUE)]
    wanted = [json.loads(trunk.lab.ip(ns, "-j", "link", "show", "dev", "c0").stdout)[0]["address"]
              for ns in ("client", "blue")]
    assert macs == wanted, rows
    assert not sum(worker["net"]["arp_off_link"] for worker in trunk.bed.show_workers())


def make_far(trunk):
    """A host behind both, which are routers that take no packet by another way than its answer's."""
    lab = trunk.lab
    for n, (ns, ip) in enumerate(trunk.ips.items()):
        lab.link((ns, "far"), ("far", ns))
        lab.address(ns, "far", f"10.91.{n}.1/24")
        lab.address("far", ns, f"10.91.{n}.2/24")
        lab.exec(ns, ["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=1",
                      "net.ipv4.conf.c0.rp_filter=1"])
        lab.ip(ns, "route", "add", f"{FAR}/32", "via", f"10.91.{n}.2")
        if n == 0:
            lab.ip("far", "addr", "add", f"{FAR}/32", "dev", "lo")
        lab.ip("far", "route", "add", f"{ip}/32", "via", f"10.91.{n}.1", "src", FAR)


def states(trunk):
    return [port["gateways"].split(" ")[1] for port in trunk.ports()]


@pytest.mark.timeout(180)
def test_net_42_each_vlan_answers_by_its_own_gateway_and_goes_on_alone(make_trunk):
    trunk = make_trunk(gateways=True)
    make_far(trunk)
    trunk.serve()
    for ip in trunk.ips.values():
        trunk.bed.wait_connect("far", ip, PORT, trunk.bed.daemon)
        trunk.lab.exec("far", ["ping", "-c", "1", "-W", "20", ip])
    wait_until(lambda: states(trunk) == ["up", "up"], TIMEOUT_S, "both gateways")
    load = trunk.start_load("far", "blue", requests=N, clients=1, streams=1, rate=10)
    trunk.lab.ip("client", "link", "set", "c0", "down")
    wait_until(lambda: states(trunk) == ["down", "up"], TIMEOUT_S, "one gateway")
    assert load.alive()
    report = trunk.bed.h2load_report(load)
    assert report.perfect and report.succeeded == N, report
    assert states(trunk) == ["down", "up"]
    trunk.lab.ip("client", "link", "set", "c0", "up")
    trunk.lab.ip("client", "route", "replace", f"{FAR}/32", "via", "10.91.0.2")
    wait_until(lambda: states(trunk) == ["up", "up"], TIMEOUT_S, "both gateways again")
    for vlan in trunk.ips:
        report = trunk.bed.h2load_report(trunk.start_load("far", vlan, requests=20, clients=2, streams=2))
        assert report.perfect, (vlan, report)


@pytest.mark.timeout(120)
def test_net_40_a_capture_has_each_vlans_tag(make_trunk):
    trunk = make_trunk()
    folder = trunk.lab.dir / "captures"
    folder.mkdir()
    trunk.bed.settings = f"capture: {{directory: {folder}}}\n"
    trunk.serve()
    trunk.wait_served()
    trunk.bed.shuntctl("capture", "start", "a.pcapng")
    ping(trunk, "client", "10.81.0.10")
    ping(trunk, "blue", "10.83.0.10")
    trunk.bed.shuntctl("capture", "stop")
    fields = ["-T", "fields", "-e", "vlan.id", "-e", "frame.interface_id", "-Y", "icmp"]
    rows = trunk.lab.exec("lb", ["tshark", "-r", folder / "a.pcapng", *fields]).stdout.splitlines()
    wanted = zip(trunk.vlans, (CLIENT, BLUE))
    assert rows == [f"{vlan}\t{port}" for vlan, port in wanted for _ in ("request", "reply")], rows


@pytest.mark.timeout(120)
def test_net_40_metrics_and_the_doctor_know_them(make_trunk):
    trunk = make_trunk()
    trunk.bed.settings = f'metrics: {{listen: "{METRICS}"}}\n'
    trunk.serve()
    trunk.wait_served()
    doctor = command(trunk.bed.shuntctl_argv("--json", "doctor"), check=False)
    findings = json.loads(doctor.stdout)["data"]["findings"]
    assert not [row for row in findings if row["severity"] == "error"], findings
    text = trunk.lab.exec("lb", [sys.executable, "-c", "import urllib.request as u; "
                                 f"print(u.urlopen('http://{METRICS}/metrics').read().decode())"]).stdout
    for port in (CLIENT, BLUE):
        assert f'shunt_port_up{{port="{port}",device="{LB}"}} 1\n' in text, text
        frames = re.search(rf'shunt_port_events_total{{port="{port}",[^}}]*event="rx_frames"}} (\d+)', text)
        assert frames and int(frames[1]) > 0, text
