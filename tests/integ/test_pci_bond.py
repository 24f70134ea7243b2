# SPDX-License-Identifier: Apache-2.0
"""A bond of two cards that QEMU emulates, with the kernel's bond as LACP's partner, or a switch (docs/bonds.md)."""

import pytest

import vm
from bond_world import BondWorld, SwitchedWorld
from lab import wait_until
from lab_fixtures import module_lab_of

SOON_S = 60  # emulated, on a busy machine
PACE = {"requests": 1200, "clients": 8, "rate": 5}  # half a minute

pytestmark = [pytest.mark.timeout(900),
              pytest.mark.skipif(bool(vm.missing()), reason=vm.missing() or "-")]


@pytest.fixture(name="lacp", scope="module")
def fixture_lacp(request):
    with module_lab_of(request) as lab:
        world = BondWorld(lab, "802.3ad")
        world.serve()
        yield world


@pytest.fixture(name="backup", scope="module")
def fixture_backup(request):
    with module_lab_of(request) as lab:
        world = BondWorld(lab, "active-backup")
        world.serve()
        yield world


@pytest.fixture(name="switched", scope="module")
def fixture_switched(request):
    with module_lab_of(request) as lab:
        world = SwitchedWorld(lab)
        world.serve()
        yield world


def wait_for_kernel(world, *up):
    wait_until(lambda: world.kernel_ports() == list(up), SOON_S, f"the kernel's ports: {up}", interval=0.5)


def test_fl_96_lacp_agrees_with_the_kernels_bond(lacp):
    lacp.wait_for("distributing", "distributing", timeout=SOON_S)
    wait_for_kernel(lacp, True, True)
    port = lacp.port()
    assert port["bond"] == "802.3ad" and port["link"] == "up" and port["speed_mbps"] == 20_000, port
    assert {m["partner"] for m in port["bond_members"]} == {lacp.kernel_system()}, port
    assert lacp.kernel_partner() == port["mac"]


def test_fl_96_connections_are_spread_over_both_members(lacp):
    lacp.wait_for("distributing", "distributing", timeout=SOON_S)
    before = lacp.received()
    report = lacp.load(requests=800, clients=16)
    assert report.perfect, report
    received = [now - was for now, was in zip(lacp.received(), before)]
    assert min(received) > 100, received
    wait_until(lambda: all(m["rx_frames"] > 100 and m["tx_frames"] > 100 for m in lacp.port()["bond_members"]),
               SOON_S, "frames by both", 0.5)


def test_fl_92_a_cable_that_is_pulled_out_of_a_lag_fails_no_request(lacp):
    """FL-96. Nor does it when it is back, and both distribute again."""
    lacp.wait_for("distributing", "distributing", timeout=SOON_S)
    load = lacp.start_load(**PACE)
    for number, states in ((1, ("down", "distributing")), (2, ("distributing", "down"))):
        lacp.set_cable(number, False)
        lacp.wait_for(*states, timeout=SOON_S)
        wait_for_kernel(lacp, *(state == "distributing" for state in states))
        assert lacp.port()["link"] == "up"
        lacp.set_cable(number, True)
        lacp.wait_for("distributing", "distributing", timeout=SOON_S)
        wait_for_kernel(lacp, True, True)
    assert load.alive()  # it saw all that
    report = lacp.report(load)
    assert report.perfect, report
    assert lacp.port()["link_downs"] == 0 and lacp.port()["member_downs"] == 2, lacp.port()
    log = lacp.daemon.output()
    assert "state=down was=distributing carrying=1" in log, log


def test_fl_96_lacp_goes_on_while_there_is_nothing_to_send(lacp):
    """For longer than a partner at the fast rate waits, three seconds."""
    lacp.wait_for("distributing", "distributing", timeout=SOON_S)
    downs = lacp.port()["member_downs"]
    lacp.guest.run("sleep 12")
    assert lacp.states() == ["distributing"] * 2 and lacp.kernel_ports() == [True, True]
    assert lacp.port()["member_downs"] == downs


def test_fl_92_a_cable_that_is_pulled_out_of_an_active_backup_fails_no_request(backup):
    """FL-93."""
    backup.wait_for("active", "standby", timeout=SOON_S)
    mac = backup.port()["mac"]
    load = backup.start_load(**PACE)
    for number, states, back in ((1, ("down", "active"), ("standby", "active")),
                                 (2, ("active", "down"), ("active", "standby"))):
        backup.set_cable(number, False)
        backup.wait_for(*states, timeout=SOON_S)
        backup.set_cable(number, True)
        backup.wait_for(*back, timeout=SOON_S)
    assert load.alive()
    report = backup.report(load)
    assert report.perfect, report
    port = backup.port()
    assert port["mac"] == mac and port["link_downs"] == 0 and port["member_downs"] == 2, port


def shared(world, counter):
    """Of each worker."""
    return [worker[counter[0]][counter[1]] for worker in world.show("workers").values()]


def test_fl_92_two_workers_get_what_each_member_hashes_to_them(switched):
    """FL-93. The switch does not see that the cable is out: it hears where the addresses are now."""
    switched.wait_for("active", "standby", timeout=SOON_S)
    for states in (("active", "standby"), ("down", "active")):
        assert switched.port()["steering"] == "device", switched.port()
        before, given = shared(switched, ("tcp", "accepted")), shared(switched, ("handover", "given"))
        report = switched.load(requests=800, clients=16)
        assert report.perfect, report
        accepted = [now - was for now, was in zip(shared(switched, ("tcp", "accepted")), before)]
        assert sum(accepted) == 16 and min(accepted) > 0, accepted
        assert shared(switched, ("handover", "given")) == given
        assert switched.states() == list(states)
        switched.set_link(False)
        switched.wait_for("down", "active", timeout=SOON_S)
    switched.set_link(True)
    switched.wait_for("standby", "active", timeout=SOON_S)


def test_fl_94_a_bond_goes_on_without_a_card_that_is_unplugged(switched):
    """Be it the active one, from which no interrupt comes any more; and the process ends as ever."""
    if switched.states()[1] == "active":
        switched.guest.qmp("set_link", name="second", up=False)
        switched.wait_for("active", "down", timeout=SOON_S)
        switched.guest.qmp("set_link", name="second", up=True)
    switched.wait_for("active", "standby", timeout=SOON_S)
    load = switched.start_load(**PACE)
    switched.unplug()
    switched.wait_for("gone", "active", timeout=SOON_S)
    report = switched.report(load)
    assert report.perfect, report
    port = switched.port()
    assert port["link"] == "up" and port["losses"] == 0 and port["member_downs"] > 0, port
    assert switched.load(requests=400).perfect
    switched.daemon.signal("TERM")
    switched.daemon.wait(SOON_S)
