# SPDX-License-Identifier: Apache-2.0
"""The exception path of a host whose only card is shuntd's (`tools/test pci`, docs/exception-path.md).

    router, client and backend 10.81.0.1 -- the card 10.81.0.10 (shuntd) -- shunt0 10.81.0.10, 10.81.0.11 (the kernel)
"""

import json
import sys

import pytest

import vm
from bird import Bird
from card_world import CARDS, MTU, READY_TIMEOUT_S, CardWorld
from guest_world import BACKEND
from h2load import MARK, arguments, parse
from lab import wait_until
from lab_fixtures import module_lab_of
from steady import steady_load
from test_exception import ANYCAST, BODY, FAR, FLOOD, HOST_CONFIG, INTERFACE, OWN, PREFIX, RATE, ROUTER_CONFIG, SSH_PORT
from testbed import PORT, VIP

SOON_S = 60  # emulated, on a busy machine
RUN = 400  # requests of a load that goes on
URL = f"http://%s:{SSH_PORT}/body"

pytestmark = [pytest.mark.timeout(900),
              pytest.mark.skipif(bool(vm.missing()), reason=vm.missing() or "-")]


class HostWorld(CardWorld):
    """The card's port has a kernel behind it, with servers of its own."""

    def __init__(self, lab, name):
        super().__init__(lab, name)
        self.guest.load_drivers("tun")
        files = lab.dir / "files"
        files.mkdir()
        (files / "body").write_bytes(b"b" * BODY)
        server = f"-m http.server {SSH_PORT} --directory {files}"
        self.guest.start("files", f"/usr/bin/python3 {server}")
        lab.start(vm.NS, "files-outside", [sys.executable, *server.split()])

    def configure(self, **changes):
        config = super().configure(**changes)
        text = config.read_text()
        for before, more in (("frontends:\n", f"    kernel: {{interface: {INTERFACE}, rate: {RATE}}}\n"
                                              f"vips: [{{prefix: {PREFIX}, arp: false}}]\n"),
                             ("stats:", f"  - {{name: anycast, address: {ANYCAST}, port: {PORT}, target: web}}\n")):
            assert text.count(before) == 1
            text = text.replace(before, more + before)
        config.write_text(text)
        return config

    def start(self, *what, **changes):
        daemon = super().start(*what, **changes)
        self.guest.run(f"ip addr add {VIP}/24 dev {INTERFACE}; ip addr add {OWN}/24 dev {INTERFACE}")
        return daemon

    def fetch(self, ip):
        """Bytes of a file that the host's kernel serves."""
        return len(self.lab.exec(vm.NS, ["curl", "-s", "-m", str(SOON_S), URL % ip], timeout=SOON_S + 5).stdout)

    def start_bird(self):
        config = self.lab.dir / "host.conf"
        config.write_text(HOST_CONFIG)
        self.guest.start("bird", f"bird -f -c {config} -s /run/bird.ctl -P /run/bird.pid")


@pytest.fixture(name="host", scope="module", params=CARDS)
def fixture_host(request):
    with module_lab_of(request) as lab:
        world = HostWorld(lab, request.param)
        world.serve()
        yield world


def wait_for_runs(runs, n):
    """Until so many more of steady_load()'s have ended."""
    wanted = len(runs) + n
    wait_until(lambda: len(runs) >= wanted, 2 * SOON_S, "requests")


def wait_for_frames_over_rate(host):
    before = host.port()["kernel_rx_over_rate"]
    wait_until(lambda: host.port()["kernel_rx_over_rate"] > before, SOON_S, "frames over rate", 0.3)


def test_fl_150_programs_of_a_host_are_reached_by_its_only_card_while_requests_flow(host):
    """FL-20, FL-22, FL-24, FL-25: from outside and to there, by full frames, under one address and another."""
    assert {link["ifname"] for link in json.loads(host.guest.run("ip -j link"))} == {"lo", INTERFACE}
    with steady_load(host, {"requests": RUN}) as (runs,):
        wait_for_runs(runs, 1)
        for ip in (OWN, VIP):
            assert host.fetch(ip) == BODY
        assert host.ping(MTU, OWN)
        fetched = host.guest.run(f"ping -c 2 -w 20 {BACKEND[0]} >/dev/null && curl -s {URL % BACKEND[0]} | wc -c")
        assert fetched.strip() == str(BODY)
        wait_for_runs(runs, 1)
    shown = host.port()
    assert shown["kernel"] == INTERFACE and shown["kernel_tx_dropped"] == 0, shown
    for cause in ("tcp", "icmp", "neighbors"):
        assert shown[f"kernel_rx_{cause}"] > 0, shown


def test_fl_150_what_nobody_asked_for_is_bounded_and_in_no_requests_way(host):
    """FL-26."""
    with steady_load(host, {"requests": RUN}) as (runs,):
        wait_for_runs(runs, 1)
        flood = host.lab.start(vm.NS, "flood", [sys.executable, "-c", FLOOD, OWN, str(4 * SOON_S), str(FAR)])
        wait_for_frames_over_rate(host)
        wait_for_runs(runs, 2)  # of which the flood has seen the last one begin and end
        wait_for_frames_over_rate(host)
        flood.kill()
    assert host.fetch(OWN) == BODY


def test_fl_150_a_host_with_one_card_announces_its_vips_by_bgp(host):
    """FL-27."""
    router = Bird(host.lab, vm.NS, ROUTER_CONFIG).start()
    host.start_bird()
    router.wait_established("host", timeout=SOON_S)
    wait_until(lambda: router.bfd_state(VIP) == "Up", SOON_S, "BFD up")
    wait_until(lambda: f"{PREFIX} via {VIP}" in host.lab.ip(vm.NS, "route").stdout, SOON_S, "the route of the VIPs")
    load = host.lab.exec(vm.NS, arguments(f"http://{ANYCAST}:{PORT}{MARK}", requests=400, clients=2, streams=4),
                         timeout=READY_TIMEOUT_S)
    report = parse(load.stdout)
    assert report.perfect, report
    assert router.protocol("host")[:2] == ("up", "Established") and router.bfd_state(VIP) == "Up"
