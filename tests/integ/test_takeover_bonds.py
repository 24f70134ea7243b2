# SPDX-License-Identifier: Apache-2.0
"""Takeovers of a bond of two interfaces, active-backup, whose cables are pulled out before, between and after
(docs/takeover.md): all processes send by the same one.

    client, and a switch `lan` 10.81.0.1 -- c0 -- lb-c --+
                                         -- c1 -- lb-d --+-- bond 10.81.0.10 shuntd -- backends
"""

import json
import re
import signal
import time

import pytest

from cable_world import DEVICE, FAR, NOTICE_S, Net, VLAN, bond_of
from lab import command, wait_until
from lab_fixtures import check_end
from takeover_world import Calls, Streams, WAIT_S, clean, count_resets, follow, info, resets

C_CARRIES, D_CARRIES = {"lb_c": "active", "lb_d": "standby"}, {"lb_c": "standby", "lb_d": "active"}


@pytest.fixture(name="make_net")
def fixture_make_net(lab):
    nets = []

    def make(**arguments):
        more = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 600\nlame_duck_s: 1\n"
        nets.append(Net(lab, more=more, **arguments))
        nets[-1].wait_for(**({} if "device" in arguments else C_CARRIES))
        count_resets(lab, "client")
        return nets[-1]
    yield make
    for net in nets:
        if net.bed.daemon:
            check_end(net.bed)


def carriers(net, behind):
    """The members that carry in the processes in front and behind, by their generations."""
    found = []
    for suffix in ("", *(f".{generation}" for generation in behind)):
        argv = net.bed.shuntctl_argv("--json", "show", "ports")
        argv[argv.index("--socket") + 1] = f"{net.bed.stats_socket}{suffix}"
        port = json.loads(command(argv).stdout)["data"][0]
        found += [m["device"].rpartition("=")[2] for m in port["bond_members"] if m["state"] == "active"]
    return found


def wait_carrier(net, member, behind):
    wanted = [member] * (1 + len(behind))
    wait_until(lambda: carriers(net, behind) == wanted, NOTICE_S, f"all to send by {member}: {carriers(net, behind)}")


def switch_sees(net, mac):
    """By which member, as its switch has learned."""
    told = net.lab.exec("client", ["bridge", "fdb", "show", "br", "lan"]).stdout
    ports = re.findall(rf"^{mac} dev (\S+) .*$", told, re.M)
    return {name for name, far in FAR.items() if far in ports}


def move_to(net, member, behind=()):
    """The other one's cable is pulled out and put back."""
    (other,) = FAR.keys() - {member}
    net.pull(other)
    wait_carrier(net, member, behind)
    net.put_back(other)
    net.wait_for(**(C_CARRIES if member == "lb-c" else D_CARRIES))
    wait_carrier(net, member, behind)


@pytest.mark.parametrize("arguments", ({}, {"workers": (0, 1), "vlan": VLAN}), ids=("plain", "vlan"))
@pytest.mark.timeout(240)
def test_fl_112_takeovers_of_a_bond_lose_nothing_whichever_member_carries(make_net, arguments):
    """FL-113: one that comes later begins with the member that carries, not with the first."""
    net = make_net(**arguments)
    bed, mac = net.bed, net.port()["mac"]
    load = [Streams(bed), Calls(bed)]
    move_to(net, "lb-d")
    older = [follow(bed, 2)]
    net.wait_for(**D_CARRIES)
    wait_carrier(net, "lb-d", [1])
    assert switch_sees(net, mac) == {"lb-d"}
    assert 'iface=lb-c" state=active' not in bed.daemon.output()  # not for a moment
    move_to(net, "lb-c", [1])
    assert switch_sees(net, mac) == {"lb-c"}
    older.append(follow(bed, 3))
    move_to(net, "lb-d", [1, 2])
    older.append(follow(bed, 4))
    wait_carrier(net, "lb-d", [1, 2, 3])
    move_to(net, "lb-c", [1, 2, 3])
    assert net.port()["mac"] == mac and switch_sees(net, mac) == {"lb-c"}
    assert all(part.finish() for part in load), bed.daemon.output()
    wait_until(lambda: not any(p.alive() for p in older), WAIT_S, "older processes to end")
    assert all(clean(bed, p.name) for p in older)
    assert resets(net.lab, "client") == 0
    net.wait_for(**C_CARRIES)


@pytest.mark.timeout(120)
def test_fl_113_a_bond_with_its_members_in_another_order_keeps_address_and_member(make_net):
    net = make_net()
    bed, mac = net.bed, net.port()["mac"]
    load = [Streams(bed), Calls(bed)]
    bed.bond = bond_of(("lb-d", "lb-c"))
    older = follow(bed, 2)
    net.wait_for(**C_CARRIES)
    assert net.port()["mac"] == mac and switch_sees(net, mac) == {"lb-c"}
    move_to(net, "lb-d", [1])
    assert all(part.finish() for part in load), bed.daemon.output()
    wait_until(lambda: not older.alive(), WAIT_S, "the older process to end")
    assert resets(net.lab, "client") == 0
    assert bed.run_calls("unary") is not None


@pytest.mark.parametrize("older, newer, why", (
    (None, f"device: {DEVICE.format(n=3, interface='lb-d')}",
     "ports: lb-c carries a bond of the older process, and is no member of one here"),
    (None, bond_of(("lb-c", "lb-d")).replace("lb-d", "lb-z"),
     "ports: lb-d is in the older process's bond of lb-c, and not here"),
    (f"device: {DEVICE.format(n=2, interface='lb-c')}", bond_of(("lb-d", "lb-c")),
     "ports: lb-c is a port of the older process by itself, and a bond's member here"),
), ids=("alone", "another", "one-more"))
@pytest.mark.timeout(120)
def test_fl_114_a_process_whose_bond_has_other_members_is_refused(make_net, older, newer, why):
    """Or the two would send by different ones when a cable is out."""
    net = make_net(**({"device": older} if older else {}))
    bed, serving = net.bed, net.bed.daemon
    load = [Streams(bed), Calls(bed)]
    bed.bond = newer
    bed.start_daemon(wait=False, words=["--takeover"], name="shuntd-lacks")
    assert bed.daemon.wait(WAIT_S) == 1
    assert why in bed.daemon.output()
    bed.daemon = serving
    time.sleep(1)  # of load
    assert all(part.finish() for part in load), serving.output()
    assert resets(net.lab, "client") == 0 and info(bed)["pid"] == serving.pid


@pytest.mark.timeout(120)
def test_fl_112_one_behind_goes_by_what_it_is_told_of_a_cable_that_was_out_unseen(make_net):
    net = make_net()
    bed = net.bed
    streams = Streams(bed)
    older = follow(bed, 2)
    wait_carrier(net, "lb-c", [1])
    older.signal(signal.SIGSTOP)
    try:
        move_to(net, "lb-d")
    finally:
        older.signal(signal.SIGCONT)
    wait_carrier(net, "lb-d", [1])
    assert streams.finish(), bed.daemon.output()
    wait_until(lambda: not older.alive(), WAIT_S, "the older process to end")
    assert resets(net.lab, "client") == 0 and clean(bed, older.name)


@pytest.mark.ends_daemon
@pytest.mark.timeout(120)
def test_fl_112_one_whose_newer_process_died_chooses_by_itself_again(make_net):
    """It stays where it went, and not by what it was told last."""
    net = make_net()
    bed = net.bed
    streams = Streams(bed)
    older = follow(bed, 2)
    newer, bed.daemon = bed.daemon, older
    newer.signal(signal.SIGKILL)
    wait_until(lambda: not newer.alive(), WAIT_S, "its end")
    net.pull("lb-c")
    bed.stats_socket = bed.stats_socket.with_name("stats.sock.1")
    net.wait_for(lb_c="down", lb_d="active")
    net.put_back("lb-c")
    net.wait_for(**D_CARRIES)
    time.sleep(1)  # a few looks at links
    net.wait_for(**D_CARRIES)
    assert streams.finish()
    assert older.wait(WAIT_S) == 0 and resets(net.lab, "client") == 0
    bed.daemon = None
