# SPDX-License-Identifier: Apache-2.0
"""A port that is a bond of two interfaces, active-backup: cables that are pulled out, interfaces that are deleted
(docs/bonds.md). LACP is in test_pci_bond.py.

    client, and a switch `lan` 10.81.0.1 -- c0 -- lb-c --+
                                         -- c1 -- lb-d --+-- bond 10.81.0.10 shuntd -- backends
"""

import json
import re
import sys
import time

import pytest

from cable_world import BLUE, BLUE_VLAN, KERNEL, MEMBERS, METRICS, NOTICE_S, Net, VLAN
from lab import command, wait_until
from lab_fixtures import check_end
from testbed import PORT, VIP

BACK_S = 30
SSH_PORT = 2222
# What comes by the cables is shuntd's; the kernel has what it gets by its interface.
HIDE = "table netdev hide {{ chain {0} {{ type filter hook ingress device \"{1}\" priority 0; policy drop; }}\n}}\n"
# Requests that tell where a host is: the sender asks for itself (RFC 5227 3).
COUNT_ANNOUNCEMENTS = f"""
table arp announcements {{
  counter seen {{ }}
  chain input {{
    type filter hook input priority 0;
    arp operation request arp saddr ip {VIP} arp daddr ip {VIP} counter name seen
  }}
}}
"""


@pytest.fixture(name="make_net")
def fixture_make_net(lab):
    nets = []

    def make(**arguments):
        nets.append(Net(lab, **arguments))
        return nets[-1]
    yield make
    for net in nets:
        check_end(net.bed)


def pull_and_put_back_each(net):
    net.pull("lb-c")
    net.wait_for(lb_c="down", lb_d="active")
    time.sleep(1)
    net.put_back("lb-c")
    net.wait_for(lb_c="standby", lb_d="active")
    time.sleep(1)
    net.pull("lb-d")
    net.wait_for(lb_c="active", lb_d="down")
    time.sleep(1)
    net.put_back("lb-d")
    net.wait_for(lb_c="active", lb_d="standby")


@pytest.mark.timeout(150)
def test_fl_92_a_cable_that_is_pulled_out_fails_no_call(make_net):
    """FL-93."""
    net = make_net()
    net.wait_for(lb_c="active", lb_d="standby")
    net.lab.nft("client", COUNT_ANNOUNCEMENTS)
    mac = net.port()["mac"]
    net.start_load()
    pull_and_put_back_each(net)
    port = net.port()
    assert port["link"] == "up" and port["link_downs"] == 0 and port["mac"] == mac, port
    assert port["bond"] == "active-backup" and port["member_downs"] == 2, port
    assert all(m["rx_frames"] and m["tx_frames"] for m in port["bond_members"]), port
    assert net.announcements() >= 2  # one for each member that became active
    net.end_load()


@pytest.mark.timeout(150)
def test_fl_92_likewise_of_two_workers_in_a_vlan(make_net):
    net = make_net(workers=(0, 1), vlan=VLAN)
    net.wait_for(lb_c="active", lb_d="standby")
    net.start_load()
    pull_and_put_back_each(net)
    assert net.port()["vlan"] == VLAN and net.port()["queues"] == 2, net.port()
    net.end_load()


@pytest.mark.timeout(150)
def test_net_40_a_bond_has_several_vlans_and_a_kernel_behind_one(make_net):
    """Requests in one of them, and in the other what is the kernel's, whichever member carries."""
    net = make_net(vlan=VLAN, blue=True)
    net.wait_for(lb_c="active", lb_d="standby")
    net.lab.nft("lb", "".join(HIDE.format(chain, name) for chain, name in zip("cd", MEMBERS)))
    net.lab.address("lb", KERNEL, f"{BLUE}/24")
    server = net.lab.start("lb", "files", [sys.executable, "-m", "http.server", str(SSH_PORT), "--bind", BLUE])
    net.bed.wait_connect("blue", BLUE, SSH_PORT, server)
    net.bed.wait_connect("blue", BLUE, PORT, net.bed.daemon)
    net.start_load()
    for member, states in (("lb-c", {"lb_c": "down", "lb_d": "active"}), ("lb-d", {"lb_c": "active", "lb_d": "down"})):
        net.pull(member)
        net.wait_for(**states)
        assert net.lab.exec("blue", ["curl", "-sf", "-m", "20", f"http://{BLUE}:{SSH_PORT}/"]).stdout
        net.bed.wait_connect("blue", BLUE, PORT, net.bed.daemon)
        net.put_back(member)
        net.wait_for(**{name: "active" if state == "active" else "standby" for name, state in states.items()})
    first, _, blue = net.bed.show("ports")
    assert [first["vlan"], blue["vlan"]] == [VLAN, BLUE_VLAN] and blue["bond"] == "active-backup", blue
    assert len(first["bond_members"]) == 2 and blue["bond_members"] == [], blue
    assert blue["kernel"] == KERNEL and blue["rx_frames"] and blue["tx_frames"] and first["kernel"] == "", blue
    net.end_load()


@pytest.mark.timeout(120)
def test_fl_92_what_is_the_kernels_goes_by_the_member_that_carries(make_net):
    """The exception path over a bond."""
    net = make_net(settings=[f"kernel: {{interface: {KERNEL}}}"])
    net.wait_for(lb_c="active", lb_d="standby")
    net.lab.nft("lb", "".join(HIDE.format(chain, name) for chain, name in zip("cd", MEMBERS)))
    net.lab.address("lb", KERNEL, f"{VIP}/24")
    server = net.lab.start("lb", "files", [sys.executable, "-m", "http.server", str(SSH_PORT), "--bind", VIP])
    net.bed.wait_connect("client", VIP, SSH_PORT, server)
    for member, states in (("lb-c", {"lb_c": "down", "lb_d": "active"}), ("lb-d", {"lb_c": "active", "lb_d": "down"})):
        net.pull(member)
        net.wait_for(**states)
        assert net.lab.exec("client", ["curl", "-sf", "-m", "20", f"http://{VIP}:{SSH_PORT}/"]).stdout
        net.put_back(member)
        wait_until(lambda: "down" not in net.states().values(), NOTICE_S, "both")
    assert net.port()["kernel_rx_tcp"] and net.port()["kernel_tx_frames"], net.port()


@pytest.mark.timeout(120)
def test_fl_95_operators_are_told_of_members(make_net):
    net = make_net()
    net.wait_for(lb_c="active", lb_d="standby")
    net.pull("lb-d")
    net.wait_for(lb_c="active", lb_d="down")
    members = "net_af_packet2,iface=lb-c active; net_af_packet3,iface=lb-d down"
    assert net.port()["members"] == members, net.port()
    text = net.lab.exec("lb", ["curl", "-s", f"http://{METRICS}/metrics"]).stdout
    up = dict(re.findall(r'^shunt_port_member_up\{port="0",member="net_af_packet\d,iface=([^"]+)"\} (\d)', text, re.M))
    assert up == {"lb-c": "1", "lb-d": "0"}, text
    found = [row for row in json.loads(command(net.bed.shuntctl_argv("--json", "doctor"), check=False).stdout)
             ["data"]["findings"] if "of its bond" in str(row)]
    assert len(found) == 1 and found[0]["severity"] == "warning" and "lb-d" in str(found), found
    net.pull("lb-c")
    net.wait_for(lb_c="down", lb_d="down")
    wait_until(lambda: net.port()["link"] == "down", NOTICE_S, "a port without a link")
    assert net.bed.show("info")["frontends"][0]["state"] == "down"
    log = net.bed.daemon.output()
    assert re.search(r'level=warn.*bond member.*lb-d.*state=down was=standby carrying=1', log), log
    assert re.search(r'level=error.*bond member.*lb-c.*state=down was=active carrying=0', log), log
    net.put_back("lb-d")
    net.wait_for(lb_c="down", lb_d="active")
    wait_until(lambda: net.port()["link"] == "up", NOTICE_S, "a link")


@pytest.mark.timeout(150)
def test_fl_94_a_bond_goes_on_without_a_member_that_is_deleted_and_takes_it_again(make_net):
    net = make_net()
    net.wait_for(lb_c="active", lb_d="standby")
    net.start_load()
    net.lab.ip("lb", "link", "del", "lb-c")
    net.wait_for(BACK_S, lb_c="gone", lb_d="active")
    wait_until(lambda: net.port()["link"] == "up", BACK_S, "a link")
    time.sleep(3)  # what waits for a segment to be sent again goes on
    net.lab.link(("client", "c0"), ("lb", "lb-c"))
    net.lab.ip("client", "link", "set", "c0", "master", "lan")
    wait_until(lambda: "gone" not in net.states().values(), BACK_S, "both members", interval=0.1)
    wait_until(lambda: net.port()["link"] == "up", BACK_S, "a link")
    assert sorted(net.states().values()) == ["active", "standby"], net.states()
    time.sleep(3)
    net.end_load()
