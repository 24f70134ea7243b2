# SPDX-License-Identifier: Apache-2.0
"""The exception path: programs of a host whose only way out is shuntd's port. The namespace `lb` is the host, `client`
the router; lb-c stands for a card: the host's kernel sees nothing of it, but by shunt0."""

import json
import os
import sys
import time

import pytest

from bird import Bird
from lab import wait_until
from ssh import PORT as SSH_PORT, Ssh
from testbed import EXIT_TIMEOUT_S, PORT, VIP, VIP6

INTERFACE = "shunt0"
ROUTER, ROUTER6 = "10.81.0.1", "fd81::1"
OWN, OWN6 = "10.81.0.11", "fd81::11"  # the kernel's alone
ANYCAST = "10.9.0.1"
PREFIX = "10.9.0.0/24"
RATE = 1000
SOON_S = 20
FLOOD_S = 6  # twice what BFD waits
FAR, NEAR = 64, 255  # hop limits
BODY = 300_000
LARGE_BODY = 2_000_000
BACK_S = 60  # a repetition of TCP's may be that late, of what was said just before a restart
MTU = 1400  # none that an interface has by itself
HIDE = f"""table netdev hide {{
  chain everything {{ type filter hook ingress device "lb-c" priority 0; policy drop; }}
}}"""
FLOOD = "\n".join((
    "import socket, sys, time",
    "sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "end = time.monotonic() + float(sys.argv[2])",
    "sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, int(sys.argv[3]))",
    "n = 0",
    "while time.monotonic() < end:",
    "    for _ in range(50):",
    "        n += sock.sendto(b'x' * 100, (sys.argv[1], 9)) > 0",
    "    time.sleep(0.001)",
    "print(n)"))
BFD = """protocol device { scan time 1; }
protocol bfd { interface "*" { interval 600 ms; multiplier 5; }; }
"""
ROUTER_CONFIG = f"""router id {ROUTER};
{BFD}
protocol kernel {{ ipv4 {{ export all; import none; }}; }}
protocol bgp host {{
  local {ROUTER} as 65001; neighbor {VIP} as 65010; passive; ttl security on; bfd on; connect delay time 1;
  ipv4 {{ import all; export none; }};
}}
"""
HOST_CONFIG = f"""router id {VIP};
{BFD}
protocol static vips {{ ipv4; route {PREFIX} blackhole; }}
protocol bgp upstream {{
  local {VIP} as 65010; neighbor {ROUTER} as 65001; ttl security on; bfd on; connect delay time 1; connect retry time 2;
  ipv4 {{ import none; export where proto = "vips"; next hop self; }};
}}
"""


class Host:
    """The standard world on a host with one port towards its router. rate: of `kernel`, None as it comes."""

    def __init__(self, world, rate=RATE):
        self.world, self.bed, self.lab = world, world.bed, world.bed.lab
        self.lab.nft("lb", HIDE)
        self.bed.port_settings[0] = [f"kernel: {{interface: {INTERFACE}{f', rate: {rate}' * bool(rate)}}}"]
        self.bed.more_frontends = [f"{{name: anycast, address: {ANYCAST}, port: {PORT}, target: web}}"]
        self.bed.settings = f"vips: [{{prefix: {PREFIX}, arp: false}}]\n"

    def start(self):
        self.world.start()
        self.configure()
        return self

    def configure(self):
        """The interface, as systemd-networkd would."""
        self.lab.address("lb", INTERFACE, f"{VIP}/24", f"{OWN}/24")
        self.lab.enable_ip6("lb", INTERFACE)
        for ip in (VIP6, OWN6):
            self.lab.ip("lb", "addr", "add", f"{ip}/64", "dev", INTERFACE, "nodad")

    def port(self):
        return self.bed.show("ports")[0]

    def curl(self, ns, url):
        return self.lab.exec(ns, ["curl", "-s", "-m", "20", url], check=False)

    def ping(self, ns, ip):
        return self.lab.exec(ns, ["ping", "-c", "1", "-i", "0.2", "-w", str(SOON_S), ip], check=False).returncode == 0


@pytest.fixture(name="host")
def fixture_host(make_world):
    return Host(make_world(ip6=True, mtu=MTU)).start()


def check_programs(host):
    """FL-20, FL-21, FL-22, FL-24: full frames both ways, pings, and who refuses what."""
    for ns, ip, other in (("client", VIP, "lb"), ("lb", ROUTER, "client")):
        assert Ssh(host.lab, other).carry(ns, ip, os.urandom(BODY))
    for ns, addresses in (("client", (OWN, VIP, OWN6, VIP6)), ("lb", (ROUTER, ROUTER6))):
        for ip in addresses:
            assert host.ping(ns, ip), (ns, ip)
    refused = {ip: sum(w["tcp"]["drop_no_connection"] for w in host.bed.show_workers())
               for ip in (VIP, ANYCAST) if host.curl("client", f"http://{ip}:{SSH_PORT + 1}/").returncode == 7}
    assert refused[ANYCAST] > refused[VIP], "of a VIP Shunt refuses, of a shared address the kernel"
    shown = host.port()
    assert shown["kernel"] == INTERFACE and shown["kernel_tx_dropped"] == 0, shown
    for cause in ("tcp", "icmp", "neighbors"):
        assert shown[f"kernel_rx_{cause}"] > 0, shown


def check_flood(host):
    """FL-26: what nobody asked for is bounded, counted, and in nobody's way."""
    before = host.port()
    started_s = time.monotonic()
    flood = host.lab.start("client", "flood", [sys.executable, "-c", FLOOD, VIP, str(FLOOD_S), str(FAR)])
    report = host.bed.run_h2load(requests=3000, clients=4, streams=4)
    assert report.perfect, report
    flood.wait(SOON_S)
    wait_until(lambda: host.port()["kernel_rx_over_rate"] > before["kernel_rx_over_rate"], SOON_S, "frames over rate")
    after, took_s = host.port(), time.monotonic() - started_s
    given = after["kernel_rx_other"] - before["kernel_rx_other"]
    over = after["kernel_rx_over_rate"] - before["kernel_rx_over_rate"]
    assert 0 < given <= len(host.bed.workers) * RATE * 3 / 4 * (took_s + 1)
    lost = after["rx_missed"] - before["rx_missed"]  # by the device: a worker may be off its core for a while
    assert given + over + lost >= int(flood.output()) * 0.9


def test_bgp_bfd_and_programs_of_the_host_share_its_only_port(host):
    """FL-20, FL-21, FL-22, FL-24, FL-26, FL-27, FL-80."""
    router = Bird(host.lab, "client", ROUTER_CONFIG).start()
    Bird(host.lab, "lb", HOST_CONFIG).start()
    router.wait_established("host")
    wait_until(lambda: router.bfd_state(VIP) == "Up", SOON_S, "BFD up")
    wait_until(lambda: PREFIX in host.lab.ip("client", "route").stdout, SOON_S, "the route of the VIPs")
    by_route = host.bed.run_h2load(requests=400, clients=2, streams=4, url=f"http://{ANYCAST}:{PORT}")
    assert by_route.perfect, by_route
    check_programs(host)
    before = router.protocol("host")
    check_flood(host)
    assert router.protocol("host") == before
    assert host.port()["kernel_rx_near_over_rate"] == 0
    near = host.lab.start("client", "near", [sys.executable, "-c", FLOOD, VIP, "1", str(NEAR)])
    near.wait(SOON_S)
    wait_until(lambda: host.port()["kernel_rx_near_over_rate"] > 0, SOON_S, "a flood from the link itself")


def test_fl_158_files_are_copied_by_ssh_and_a_session_outlives_a_restart(make_world, lab):
    """By IPv4 and IPv6, to the port's addresses and the kernel's own, at the rate that is the default."""
    host = Host(make_world(ip6=True, mtu=MTU), rate=None).start()
    ssh, body = Ssh(lab, "lb"), os.urandom(LARGE_BODY)
    for ip in (VIP, VIP6, OWN, OWN6):
        assert ssh.carry("client", ip, body), ip
    shown = host.port()
    by_tcp, of_others = (shown[f"kernel_rx_{cause}"] for cause in ("tcp", "other"))
    assert min(by_tcp, of_others) > 2 * LARGE_BODY / MTU, shown
    typed, seen = lab.dir / "typed", lab.dir / "seen"
    os.mkfifo(typed)
    seen.touch()
    session = lab.start("client", "session", ["sh", "-c", f"{ssh.line(VIP, 'cat')} <{typed} >{seen}"])
    with open(typed, "wb", buffering=0) as terminal:
        terminal.write(b"before\n")
        wait_until(lambda: seen.read_bytes() == b"before\n", SOON_S, "an echo")
        host.bed.daemon.stop(EXIT_TIMEOUT_S)
        assert INTERFACE not in lab.ip("lb", "link").stdout
        terminal.write(b"meanwhile\n")
        host.bed.start_daemon()
        host.configure()
        wait_until(lambda: seen.read_bytes() == b"before\nmeanwhile\n", BACK_S, "the echo of what was typed meanwhile")
    assert session.wait(SOON_S) == 0, session.output()


def test_the_interface_goes_with_shuntd_and_comes_back(host):
    """FL-28, FL-29."""
    host.lab.ip("client", "link", "set", "c0", "down")
    wait_until(lambda: "NO-CARRIER" in host.lab.ip("lb", "link", "show", INTERFACE).stdout, SOON_S, "carrier lost")
    host.lab.ip("client", "link", "set", "c0", "up")
    wait_until(lambda: "NO-CARRIER" not in host.lab.ip("lb", "link", "show", INTERFACE).stdout, SOON_S, "carrier back")
    mac = host.port()["mac"]
    host.bed.daemon.stop(EXIT_TIMEOUT_S)
    assert INTERFACE not in host.lab.ip("lb", "link").stdout
    host.bed.start_daemon()
    shown, = json.loads(host.lab.ip("lb", "-j", "link", "show", INTERFACE).stdout)
    assert (shown["address"], shown["mtu"]) == (mac, MTU) and "UP" in shown["flags"], shown
