# SPDX-License-Identifier: Apache-2.0
"""shuntd on network cards of the PCI bus, which QEMU emulates: what docs/devices.md says of them.

`tools/test pci` runs these. The tests of one card share a guest, and a daemon where they can; each of
them can also run alone.
"""

import time

import pytest

import vm
from card_world import CARDS, MTU, SECOND, SECOND_CLIENT, CardWorld
from guest_world import BACKEND
from lab import wait_until
from lab_fixtures import module_lab_of
from operating_page import CARD, CONFIG, INSTALL, OF_PACKAGES, commands, typed
from testbed import VIP

SOON_S = 60  # emulated, on a busy machine
CLOSED_S = 400  # e1000e's driver asks the registers of a card that is gone again and again
BOTH = (1, 2)
VLAN = 7
VERIFIES = {"virtio": "device", "virtio-vfio": "device", "e1000e": "software", "vmxnet3": "device"}
STEERS = {"virtio": "device", "virtio-vfio": "device", "e1000e": "software", "vmxnet3": "software"}

pytestmark = [pytest.mark.timeout(1200),
              pytest.mark.skipif(bool(vm.missing()), reason=vm.missing() or "-")]


@pytest.fixture(name="card", scope="module", params=CARDS)
def fixture_card(request):
    """A CardWorld of this name; all its tests run one after the other."""
    with module_lab_of(request) as lab:
        yield CardWorld(lab, request.param)


def only(name):
    return pytest.mark.parametrize("card", [name], indirect=True)


def tcp(card, counter):
    return sum(w["tcp"][counter] for w in card.workers())


def drops(card):
    return tcp(card, "drop_checksum")


@only("virtio")
def test_what_stands_in_the_way_is_said_with_its_remedy(card):
    card.stop()
    card.bind("virtio-pci")
    assert "the kernel's driver virtio-pci has it: bind it to" in card.refusal()
    card.unbind()
    assert "no driver has it: bind it to" in card.refusal()
    card.bind()
    assert "needs hugepages: put --in-memory" in card.refusal(eal="[-m, \"512\"]")
    pages = card.guest.run("sysctl -n vm.nr_hugepages; sysctl -qw vm.nr_hugepages=0")
    assert "there are no hugepages: reserve some" in card.refusal()
    card.guest.run("sysctl -qw vm.nr_hugepages=4")
    assert "of 4 hugepages are free" in card.refusal()
    card.guest.run(f"sysctl -qw vm.nr_hugepages={pages}")


def test_the_documented_config_carries_requests_and_full_frames(card):
    card.serve()
    card.carry_full_frames()
    assert card.ping(MTU)
    port = card.port()
    assert port["mtu"] == MTU and port["rx_frames"] and port["tx_frames"], port
    assert drops(card) == 0


@pytest.mark.parametrize("card", ["virtio", "virtio-vfio"], indirect=True)
def test_the_operators_page_takes_a_card_and_gives_it_back(card):
    """docs/operating.md, as an operator types it; the guest has no systemd, so that the start is the test's."""
    card.stop()
    card.bind("virtio-pci")
    config = card.configure()
    (interface,) = card.guest.run(f"ls {vm.SYS}/{vm.CARD}/virtio*/net").split()
    words = {"INTERFACE": interface, "DRIVER": card.driver, "CARD": vm.CARD, CONFIG: str(config)}
    pages = card.guest.run("sysctl -n vm.nr_hugepages")
    said = {}
    for command in commands()[CARD]:
        if command.startswith(OF_PACKAGES):
            assert command == "systemctl restart shunt"
            _, examined = card.type(typed(commands()[INSTALL][-1], words))
            assert "0 errors" in examined, examined
            card.start()
            continue
        if command.startswith("echo > "):  # it is given back
            report = card.load()
            assert report.perfect, report
            card.stop()
        status, said[command] = card.type(typed(command, words))
        assert status == 0, (command, said)
    assert vm.CARD in said["readlink -f /sys/class/net/INTERFACE/device"]
    assert bool(said["ls /sys/kernel/iommu_groups"].split()) == (card.driver == vm.VFIO), said
    assert said["readlink /sys/bus/pci/devices/CARD/driver"].strip().endswith(f"/{card.driver}"), said
    assert "link" in said["shuntctl show ports"], said
    assert card.guest.run(f"readlink {vm.SYS}/{vm.CARD}/driver").strip().endswith("/virtio-pci")
    card.guest.run(f"sysctl -qw vm.nr_hugepages={pages}")


def test_fl_179_the_card_uses_addresses_as_its_driver_has_them(card):
    """And requests go by them: DMA to others would reach nothing."""
    card.serve()
    assert f" iova={'va' if card.driver == vm.VFIO else 'pa'} " in card.daemon.output(), card.daemon.output()[:2000]
    huge = card.guest.run("grep HugetlbPages /proc/$(pidof shuntd)/status")  # with vfio there may be some
    assert card.driver == vm.VFIO or int(huge.split()[1]) > 0, huge
    report = card.load()
    assert report.perfect, report


def test_fl_151_checksums_are_verified_by_whom_is_shown(card):
    """And by software where nobody else does."""
    card.serve()
    assert card.port()["checksums"] == VERIFIES[card.name]
    report = card.load()
    assert report.perfect, report

    def as_shown():
        """Both are since the start; a segment may come between one and the other."""
        counters = [w["tcp"] for w in card.workers()]
        came, by_software = (sum(c[name] for c in counters) for name in ("segments_in", "checksums_by_software"))
        print(f"{came} segments, {by_software} verified by software")
        return by_software < came / 10 if VERIFIES[card.name] == "device" else by_software == came
    wait_until(as_shown, SOON_S, "the one who verifies to have verified all", 0.5)


def test_segments_with_a_wrong_checksum_are_counted_and_nothing_else(card):
    card.serve()
    before = drops(card)
    card.send_bad_segments(20)
    report = card.load()
    assert report.perfect, report
    assert drops(card) == before + 20


def test_a_killed_daemon_is_followed_by_another_on_the_same_card(card):
    card.serve()
    card.daemon.signal("KILL")
    card.daemon.wait(SOON_S)
    card.serve()
    report = card.load()
    assert report.perfect, report


def test_a_frontend_in_a_vlan_is_reached_by_frames_with_its_tag_alone(card):
    """NET-37."""
    with card.in_vlan(VLAN):
        card.serve(vlan=VLAN)
        report = card.load()
        assert report.perfect, report
        assert card.ping(MTU)
        assert card.port()["vlan"] == VLAN
        assert drops(card) == 0
    with card.in_vlan(VLAN + 1):
        assert not card.ping(100)


def test_net_40_two_vlans_of_a_card_are_ports_of_their_own(card):
    """With frames of both at the same time, in full length; then behind a switch that has the second alone."""
    with card.in_vlans({VLAN: BACKEND[0], VLAN + 2: SECOND_CLIENT}):
        card.serve(vlan=VLAN, second=VLAN + 2)
        loads = [card.start_load(400, ip) for ip in (VIP, SECOND)]
        for report in map(card.end_load, loads):
            assert report.perfect, report
        assert card.ping(MTU) and card.ping(MTU, SECOND)
        ports = card.show("ports")
        assert [port["vlan"] for port in ports] == [VLAN, VLAN + 2], ports
        for port in ports:
            assert port["rx_frames"] > 400 and port["tx_frames"] > 400 and not port["rx_other_vlan"], port
        assert drops(card) == 0
    with card.in_vlans({VLAN + 1: BACKEND[0], VLAN + 2: SECOND_CLIENT}):
        assert not card.ping(100)
        assert card.ping(MTU, SECOND)


def wait_for_link(card, state):
    """How often the log has said so, of this daemon and those before it."""
    wait_until(lambda: card.port()["link"] == state, SOON_S, f"a link that is {state}")
    return card.daemon.output().count(f'msg="link {state}"')


def test_a_link_that_goes_down_and_comes_back_is_told(card):
    card.serve()
    ups = wait_for_link(card, "up")  # which some cards must agree on first
    downs = card.daemon.output().count('msg="link down"')
    before = card.port()["link_downs"]
    card.set_link(False)
    assert wait_for_link(card, "down") == downs + 1
    assert card.port()["link_downs"] == before + 1
    card.set_link(True)
    assert wait_for_link(card, "up") == ups + 1
    report = card.load()
    assert report.perfect, report


@only("virtio")
def test_a_card_belongs_to_one_daemon_in_whatever_namespace(card):
    card.serve()
    status, said = card.guest.try_run(f"unshare -n {card.command()}")
    assert status == 1 and f"ports[0].device: {vm.CARD}: another process drives it" in said, said
    report = card.load()
    assert report.perfect, report


def share(card):
    """A load on sixteen connections; of each worker, how many it had, and frames that it received and handed over."""
    before = card.workers()
    report = card.load(requests=800, clients=16)
    assert report.perfect, report
    return [[now[group][name] - was[group][name] for now, was in zip(card.workers(), before)]
            for group, name in (("tcp", "accepted"), ("port0", "rx_frames"), ("handover", "given"))]


def test_fl_152_two_workers_share_what_a_card_brings(card):
    """Nothing is handed over where the card's hash is the one that workers count on."""
    card.serve(workers=BOTH)
    assert card.port()["steering"] == STEERS[card.name]
    accepted, received, given = share(card)
    print(f"accepted {accepted}, received {received}, handed over {given}")
    assert sum(accepted) == 16 and min(accepted) > 0, accepted
    assert (sum(given) == 0) == (STEERS[card.name] == "device"), given


@only("virtio")
def test_fl_153_two_workers_have_a_queue_each_of_a_card_behind_af_xdp(card):
    """The kernel's driver keeps it, and copies."""
    card.serve_by_xdp(BOTH)
    assert card.port()["steering"] == "software"
    accepted, received, given = share(card)
    print(f"accepted {accepted}, received {received}, handed over {given}")
    assert sum(accepted) == 16 and min(accepted) > 0, accepted
    assert min(received) > 0 and sum(given) > 0, (received, given)


@pytest.mark.parametrize("card", ["virtio", "virtio-vfio", "vmxnet3"], indirect=True)
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_card_that_is_reset_is_opened_anew_and_connections_go_on(card, busy):
    """NET-38: the kernel takes its rings away, and nobody is told. There is no such reset of the e1000e here: by `pm`
    QEMU keeps its registers, and after one of the bus its link stays down."""
    card.serve()
    assert card.load().perfect
    losses, since = card.port()["losses"], len(card.daemon.output())
    if busy:
        sent = card.port()["tx_frames"]
        load = card.start_load(requests=4000)
        wait_until(lambda: card.port()["tx_frames"] > sent + 1000, SOON_S, "the load is on")
    began = time.monotonic()
    card.reset()
    since = card.daemon.wait_for("device silent", SOON_S, since)
    silent = time.monotonic() - began
    card.daemon.wait_for("device back", SOON_S, since)
    print(f"silent after {silent:.1f} s, back after {time.monotonic() - began:.1f} s")
    if busy:
        report = card.end_load(load)
        assert report.perfect, report
    report = card.load()
    assert report.perfect, report
    assert card.port()["losses"] == losses + 1 and card.port()["link"] == "up"


def test_a_card_that_is_unplugged_is_missed_and_taken_again_when_it_is_back(card):
    card.serve()
    before = card.port()["losses"]
    since = len(card.daemon.output())
    card.unplug()
    card.daemon.wait_for("device gone", SOON_S, since)
    wait_until(lambda: not card.is_plugged(), SOON_S, "the guest's kernel lets the card go", 1)
    port, (frontend,) = card.port(), card.show("info")["frontends"]
    assert port["link"] == "gone" and port["losses"] == before + 1, port
    assert frontend["state"] == "down", frontend
    card.plug()
    wait_until(card.is_plugged, SOON_S, "the card in its slot", 1)
    card.bind()
    card.daemon.wait_for("device back", CLOSED_S, since)
    # The backend may have been given up meanwhile, for a while.
    wait_until(lambda: card.load(requests=4).perfect, SOON_S, "requests again", 1)
    report = card.load()
    assert report.perfect, report
