# SPDX-License-Identifier: Apache-2.0
"""Packet I/O over every virtual device that needs no special host, and what becomes of devices: links
go down, interfaces go away and come back, others cannot be opened at all."""

import pathlib
import re
import sys

import load_agent
import pytest
from lab import wait_until
from lab_fixtures import check_end
from testbed import LINKS, URL6, WORKERS, Testbed

HERE = pathlib.Path(__file__).parent
BACK_TIMEOUT_S = 60
CLIENT_PORT = 0  # in shunt.yaml


@pytest.mark.parametrize("device", ("af_packet", "tap", "af_xdp"))
def test_a_device_carries_requests(make_world, device):
    if device == "af_xdp" and len(WORKERS) > 1:
        pytest.skip("af_xdp uses one queue of a veth")
    world = make_world(device=device).start()
    report = world.bed.run_h2load(requests=1000, clients=4, streams=4)
    assert report.perfect, report
    world.bed.run_calls("unary", count=10)


def test_large_frames_carry_large_bodies_on_af_packet(lab):
    bed = Testbed(lab, mtu=9000)
    bed.start_http_backend("one", "10.82.0.1", 1 << 20)
    load_agent.serve_echo(bed, ("10.82.0.1", 8080))
    report = bed.run_h2load(requests=64, clients=2, streams=4)
    assert report.perfect and report.payload == 64 << 20, report
    assert bed.mean_sent("port0") > 3000, bed.show("workers")
    check_end(bed)


# -- senders that leave checksums and splitting to hardware, which a veth is not

BODY = 1 << 20


def offloads_on(lab, ends=tuple((far, far_if) for far, (far_if, _) in LINKS.items())):
    for ns, interface in ends:
        lab.set_offloads(ns, interface, "on", ("tx", "gso", "tso"))


def serve_bodies(bed):
    bed.start_http_backend("one", "10.82.0.1", BODY)
    load_agent.serve_echo(bed, ("10.82.0.1", 8080))


def run_bodies(bed, count=64):
    """So many of a MiB, up and down."""
    upload = bed.lab.dir / "upload"
    upload.write_bytes(b"u" * BODY)
    report = bed.run_h2load(requests=count, clients=2, streams=4, body=upload)
    assert report.perfect and report.payload == count * BODY, report


def test_a_veths_peers_may_keep_their_offloads(lab):
    """NET-34, NET-35. Checksums that were never made are not asked for; of segments longer than a frame the first
    are lost, then the peer splits."""
    bed = Testbed(lab)
    offloads_on(lab)
    serve_bodies(bed)
    run_bodies(bed)
    for number in (0, 1):
        now = port(bed, number)
        assert now["rx_checksum_unmade"] > 100 and now["rx_cut"] > 0, now
        assert now["merged"] == "tso taken from the veth's peer", now
        features = lab.exec(("client", "backends")[number], ["ethtool", "-k", ("c0", "b0")[number]]).stdout
        assert "tcp-segmentation-offload: off" in features, features
    cut = [port(bed, number)["rx_cut"] for number in (0, 1)]
    run_bodies(bed)
    assert cut == [port(bed, number)["rx_cut"] for number in (0, 1)]
    assert sum(w["tcp"]["drop_checksum"] for w in bed.show_workers()) == 0
    assert bed.daemon.output().count('msg="frames too long" port=') == 2, bed.daemon.output()
    check_end(bed)
    features = lab.exec("client", ["ethtool", "-k", "c0"]).stdout
    assert "tcp-segmentation-offload: on" in features, features  # shuntd has gone, and with it what it asked for


def test_what_an_interface_merges_is_switched_off_whatever_merges_it(lab):
    """NET-35. Of a veth these two can be on; a card's own, rx-gro-hw, has a name like theirs."""
    merging = ("rx-gro-list", "rx-udp-gro-forwarding")
    bed = Testbed(lab)
    lab.set_offloads("lb", "lb-c", "on", merging)
    offloads_on(lab, [("client", "c0")])
    serve_bodies(bed)
    run_bodies(bed, count=8)
    assert port(bed, 0)["merged"] == "gro and lro switched off, tso taken from the veth's peer", port(bed, 0)
    features = lab.exec("lb", ["ethtool", "-k", "lb-c"]).stdout
    assert all(f"{name}: off" in features for name in merging), features
    check_end(bed)


def test_a_corrupt_checksum_is_dropped_where_others_are_not_made(lab):
    """NET-34. Who writes a checksum is held to it."""
    bed = Testbed(lab)
    offloads_on(lab)
    serve_bodies(bed)
    lab.exec("client", [sys.executable, HERE / "bad_segments.py", "10.81.0.1", "10.81.0.10", "20"])
    run_bodies(bed, count=4)
    assert sum(w["tcp"]["drop_checksum"] for w in bed.show_workers()) == 20, bed.show("workers")
    check_end(bed)


# -- VLANs

VLAN = 7
STRAYS = 5


def has_vlans(lab):
    """Whether the kernel knows interfaces of a VLAN."""
    done = lab.exec("client", ["ip", "link", "add", "link", "c0", "name", "c0.9", "type", "vlan", "id", "9"],
                    check=False)
    return done.returncode == 0


def tag_client(lab):
    """The client's addresses go from c0 to an interface of that VLAN on top of it."""
    if not has_vlans(lab):
        pytest.skip("the kernel has no VLANs")
    lab.ip("client", "link", "add", "link", "c0", "name", "c0.v", "type", "vlan", "id", str(VLAN))
    lab.ip("client", "addr", "flush", "dev", "c0")
    lab.ip("client", "link", "set", "c0.v", "up")
    lab.address("client", "c0.v", "10.81.0.1/24")
    lab.enable_ip6("client", "c0.v")
    lab.ip("client", "addr", "add", "fd81::1/64", "dev", "c0.v", "nodad")


def start_switch(bed, tci, *words):
    middle = bed.middle_of("client")
    return bed.lab.start(middle, "vlan", [sys.executable, HERE / "vlan_agent.py", str(tci), *map(str, words)])


def run_in_vlan(bed):
    """ARP, neighbor discovery, and frames of full length in both directions."""
    bed.port_settings[CLIENT_PORT] = [f"vlan: {VLAN}"]
    serve_bodies(bed)
    run_bodies(bed, count=8)
    assert bed.run_h2load(url=URL6, requests=8, clients=1, streams=4).perfect
    now = port(bed)
    assert now["vlan"] == VLAN and now["tx_dropped"] == 0, now
    for counter, wanted in (("arp_answered", True), ("nd_answered", True), ("eth_vlan", False)):
        assert any(w["net"][counter] for w in bed.show_workers()) == wanted, counter


def test_a_port_of_a_vlan_speaks_with_an_interface_of_it(lab):
    """NET-37."""
    bed = Testbed(lab, ip6=True)
    tag_client(lab)
    run_in_vlan(bed)
    check_end(bed)


def test_a_port_of_a_vlan_drops_frames_of_others(lab):
    """NET-37. The other end is a switch, which sends some of those, too."""
    bed = Testbed(lab, ip6=True, faultlinks=("client",))
    switch = start_switch(bed, VLAN)
    run_in_vlan(bed)
    before = port(bed)["rx_other_vlan"]
    switch.stop()
    start_switch(bed, VLAN, STRAYS)
    wait_until(lambda: port(bed)["rx_other_vlan"] >= before + 2 * STRAYS, BACK_TIMEOUT_S, "strays")
    run_bodies(bed, count=2)
    check_end(bed)


def test_a_tag_that_is_a_priority_alone_is_passed_over(lab):
    """NET-36."""
    bed = Testbed(lab, faultlinks=("client",))
    start_switch(bed, 5 << 13)
    serve_bodies(bed)
    run_bodies(bed, count=4)
    assert sum(w["net"]["eth_vlan"] for w in bed.show_workers()) == 0
    check_end(bed)


# -- links and devices that go and come

def port(bed, number=CLIENT_PORT):
    return bed.show("ports")[number]


def wait_link(bed, link):
    wait_until(lambda: port(bed)["link"] == link, BACK_TIMEOUT_S, f"link {link}")


def frontend(bed):
    return bed.show("info")["frontends"][0]


def make_client_link(bed):
    far_if, near_if = LINKS["client"]
    bed.lab.link(("client", far_if), ("lb", near_if), queues=len(bed.workers))
    bed.lab.address("client", far_if, "10.81.0.1/24")


def wait_served(bed):
    bed.wait_connect("client", "10.81.0.10", 8080, bed.daemon)
    report = bed.run_h2load(requests=1000, clients=4, streams=4)
    assert report.perfect, report


def log_downs(bed):
    """How often the log says so of the clients' port. The bed's link may come up a moment after the daemon."""
    return bed.daemon.output().count('msg="link down" port=0')


@pytest.mark.parametrize("device", ("af_packet", "af_xdp"))
def test_a_link_that_goes_down_is_told_until_it_is_up(make_world, device):
    if device == "af_xdp" and len(WORKERS) > 1:
        pytest.skip("af_xdp uses one queue of a veth")
    bed = make_world(device=device).start().bed
    wait_link(bed, "up")  # the carrier may come a moment after the daemon
    at_first = port(bed)
    assert at_first["speed_mbps"] == 10000, at_first
    assert at_first["link_downs"] == 0 and frontend(bed)["state"] == "serving"
    downs = log_downs(bed)
    bed.lab.ip("client", "link", "set", "c0", "down")
    wait_link(bed, "down")
    now = port(bed)
    assert now["link_downs"] == 1 and now["speed_mbps"] is None, now
    assert now["since_s"] < at_first["since_s"] + BACK_TIMEOUT_S
    told = frontend(bed)
    assert told["state"] == "down" and told["error"] == "port 0: there is no link", told
    assert port(bed, 1)["link"] == "up"
    bed.lab.ip("client", "link", "set", "c0", "up")
    wait_link(bed, "up")
    assert frontend(bed)["state"] == "serving"
    wait_served(bed)
    assert port(bed)["losses"] == 0
    assert log_downs(bed) == downs + 1, bed.daemon.output()


@pytest.mark.parametrize("device", ("af_packet", "af_xdp"))
def test_an_interface_that_was_deleted_is_taken_again_when_it_is_back(make_world, device):
    """TH-73."""
    if device == "af_xdp" and len(WORKERS) > 1:
        pytest.skip("af_xdp uses one queue of a veth")
    bed = make_world(device=device).start().bed
    wait_served(bed)
    for losses in (1, 2):
        mac = port(bed)["mac"]
        bed.lab.ip("lb", "link", "delete", LINKS["client"][1])
        wait_link(bed, "gone")
        told = frontend(bed)
        assert told["state"] == "down" and "port 0: the device is gone" in told["error"], told
        assert port(bed)["losses"] == losses
        make_client_link(bed)
        wait_link(bed, "up")
        assert port(bed)["mac"] != mac
        wait_served(bed)
    assert frontend(bed)["state"] == "serving"
    assert 'msg="device gone" port=0' in bed.daemon.output()
    assert 'msg="device back" port=0' in bed.daemon.output()


def test_the_backends_interface_may_go_and_come_under_load(make_world):
    bed = make_world().start().bed
    load = bed.start_h2load("load", seconds=6, clients=4, streams=4)
    far_if, near_if = LINKS["backends"]
    addresses = re.findall(r"inet (\S+)", bed.lab.ip("backends", "addr", "show", far_if).stdout)
    bed.lab.ip("lb", "link", "delete", near_if)
    wait_until(lambda: port(bed, 1)["link"] == "gone", BACK_TIMEOUT_S, "device gone")
    bed.lab.link(("backends", far_if), ("lb", near_if), queues=len(bed.workers))
    for address in addresses:
        bed.lab.address("backends", far_if, address)
    wait_until(lambda: port(bed, 1)["link"] == "up", BACK_TIMEOUT_S, "device back")
    load.stop()
    wait_until(lambda: bed.run_h2load(requests=100, clients=1, streams=1).perfect, BACK_TIMEOUT_S,
               "requests answered again")


def test_a_link_that_comes_up_ends_backoffs(make_world):
    world = make_world().start()
    bed = world.bed

    def failures():
        return sum(w["proxy"]["connect_failures"] for w in bed.show_workers())

    world.backends["green-2"].kill()
    wait_until(lambda: failures() >= 4, 30, "four refused attempts, and so a wait of seconds")
    bed.lab.ip("client", "link", "set", "c0", "down")
    wait_link(bed, "down")
    bed.lab.ip("client", "link", "set", "c0", "up")
    wait_link(bed, "up")
    wait_until(lambda: 'msg="backoff cut short" reason="link up" endpoints=1' in bed.daemon.output(), BACK_TIMEOUT_S,
               "an attempt because of the link")


def test_a_tap_that_somebody_deleted_is_made_again(make_world):
    bed = make_world(device="tap").start().bed
    bed.lab.ip("lb", "link", "delete", "tap-lb-c")
    wait_until(lambda: port(bed)["losses"] == 1 and port(bed)["link"] != "gone", BACK_TIMEOUT_S,
               "the tap made again")
    bed.lab.ip("lb", "link", "set", "tap-lb-c", "address", "02:00:00:00:ff:00", "up")
    bed.lab.ip("lb", "link", "set", "tap-lb-c", "master", "br-lb-c")
    bed.lab.ip("client", "neigh", "flush", "dev", "c0")  # the new MAC was told before the bridge was there
    wait_link(bed, "up")
    wait_served(bed)


# -- devices that cannot be opened

def start_with(world, *replacements):
    bed = world.bed
    config = bed.config_text

    def changed():
        text = config()
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        return text
    bed.config_text = changed
    bed.start_daemon(wait=False)
    assert bed.daemon.wait(BACK_TIMEOUT_S) == 1
    return bed.daemon.output()


@pytest.mark.ends_daemon
def test_a_card_that_is_not_there_is_called_so(make_world):
    world = make_world()
    output = start_with(world, ("net_af_packet0,iface=lb-c", "fffe:ff:1f.7"))
    assert "ports[0].device: fffe:ff:1f.7: there is no such device on the PCI bus" in output


@pytest.mark.ends_daemon
def test_fl_153_a_veth_behind_af_xdp_has_one_queue_and_is_refused_for_two_workers(make_world):
    output = start_with(make_world(device="af_xdp", workers=(0, 1)))
    assert "ports[0].device: net_af_xdp0: lb-c has 1 queues for 2 workers; if its driver can have more: " \
        "ethtool -L lb-c combined 2" in output


@pytest.mark.ends_daemon
def test_a_card_of_another_process_is_not_touched(make_world):
    world = make_world()
    lock = pathlib.Path("/run/shunt/pci-fffe:ff:1f.6.lock")
    lock.parent.mkdir(exist_ok=True)
    # In another network namespace than the one that has shuntd.
    rival = world.bed.lab.start("client", "rival", ["flock", "-n", lock, "sh", "-c", "echo has it; sleep 60"])
    wait_until(lambda: "has it" in rival.output(), BACK_TIMEOUT_S, "the rival's lock")
    output = start_with(world, ("net_af_packet0,iface=lb-c", "fffe:ff:1f.6"))
    assert "ports[0].device: fffe:ff:1f.6: another process drives it" in output


@pytest.mark.ends_daemon
def test_hugepages_that_are_not_there_are_called_so(make_world):
    pages = pathlib.Path("/sys/kernel/mm/hugepages").glob("*/nr_hugepages")
    if any(int(page.read_text()) for page in pages):
        pytest.skip("this host has hugepages")
    output = start_with(make_world(), ('[--in-memory, --no-huge, -m, "512"]', "[--in-memory]"))
    assert "there are no hugepages: reserve some" in output


def test_dpdks_own_threads_keep_off_the_workers_cores(world):
    if len(WORKERS) > 1:
        pytest.skip("no core is left")
    for task in pathlib.Path(f"/proc/{world.bed.daemon.popen.pid}/task").iterdir():
        if (task / "comm").read_text().startswith("eal-intr"):
            allowed = re.search(r"Cpus_allowed_list:\s*(\S+)", (task / "status").read_text())[1]
            assert str(WORKERS[0]) not in allowed.split(","), allowed
            return
    raise AssertionError("no interrupt thread")
