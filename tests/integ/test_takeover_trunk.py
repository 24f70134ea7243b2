# SPDX-License-Identifier: Apache-2.0
"""Takeovers of a trunk: two VLANs of one interface, with clients in each, which a switch between keeps apart
(docs/takeover.md). Cards are in test_pci_takeover.py.

    client 10.81.0.1 -- VLAN 7 --+
                                 +-- lb-c: 10.81.0.10 and 10.83.0.10 (shuntd) -- backends
    blue   10.83.0.1 -- VLAN 9 --+
"""

import signal
import sys

import pytest

from lab import wait_until
from takeover_world import Calls, Streams, WAIT_S, clean, count_resets, follow, info, resets
from testbed import HERE, PORT

N_TAKEOVERS = 3  # as many as may be behind one another
VLAN, BLUE_VLAN, MORE_VLAN = 7, 9, 11
BLUE, MORE = "10.83.0.10", "10.84.0.10"  # shuntd's
IN_BLUE = {"ns": "blue", "target": f"{BLUE}:{PORT}"}
NAMESPACES = ("client", "blue")
DEVICE = "net_af_packet0,iface=lb-c"


def port(vlan, address):
    return f"{{device: '{DEVICE}', vlan: {vlan}, addresses: [{address}/24]}}"


def frontend(name, address):
    return f"{{name: {name}, address: {address}, port: {PORT}, target: web}}"


@pytest.fixture(name="bed")
def fixture_bed(make_world, lab):
    world = make_world(faultlinks=("client",))
    bed, middle = world.bed, world.bed.middle_of("client")
    ways = [f"far={VLAN}"]
    for ns, vlan, subnet in (("blue", BLUE_VLAN, 83), ("more", MORE_VLAN, 84)):
        lab.link((ns, "c0"), (middle, ns))
        lab.address(ns, "c0", f"10.{subnet}.0.1/24")
        ways.append(f"{ns}={vlan}")
    lab.start(middle, "trunk", [sys.executable, HERE / "trunk_agent.py", "near", "0", *ways])
    bed.port_settings[0] = [f"vlan: {VLAN}"]
    bed.more_ports = [port(BLUE_VLAN, BLUE)]
    bed.more_frontends = [frontend("blue", BLUE)]
    bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 600\nlame_duck_s: 1\n"
    world.start()
    bed.wait_connect("blue", BLUE, PORT, bed.daemon)
    for ns in NAMESPACES:
        count_resets(lab, ns)
    return bed


def begin(bed):
    return [kind(bed, **where) for kind in (Streams, Calls) for where in ({}, IN_BLUE)]


def finish(bed, load):
    """Nothing failed, and nobody was reset."""
    assert all(part.finish() for part in load), bed.daemon.output()
    assert [resets(bed.lab, ns) for ns in NAMESPACES] == [0, 0]


@pytest.mark.timeout(240)
def test_fl_110_takeovers_of_a_trunk_lose_nothing_in_either_vlan(bed):
    """And FL-111: the last process has a VLAN more than those before it."""
    load, older = begin(bed), []
    for number in range(2, N_TAKEOVERS + 2):
        if number == N_TAKEOVERS + 1:
            bed.more_ports.append(port(MORE_VLAN, MORE))
            bed.more_frontends.append(frontend("more", MORE))
        older.append(follow(bed, number))
        assert info(bed)["generation"] == number
    assert info(bed)["processes_behind"] == N_TAKEOVERS
    bed.wait_connect("more", MORE, PORT, bed.daemon)
    assert [p["vlan"] for p in bed.show("ports") if p["vlan"]] == [VLAN, BLUE_VLAN, MORE_VLAN]
    finish(bed, load)
    wait_until(lambda: not any(p.alive() for p in older), WAIT_S, "older processes to end")
    assert all(clean(bed, p.name) for p in older)


@pytest.mark.timeout(120)
def test_fl_110_a_process_that_comes_to_nothing_changes_nothing_in_either_vlan(bed):
    load, serving = begin(bed), bed.daemon
    nowhere = {"GRPC_XDS_BOOTSTRAP_CONFIG": '{"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": '
               '[{"type": "insecure"}]}], "node": {"id": "other"}}', "GRPC_XDS_BOOTSTRAP": ""}
    bed.start_daemon(wait=False, words=["--takeover"], name="shuntd-crash", env=nowhere)
    wait_until(lambda: info(bed)["newer"], WAIT_S, "the newer process")
    wait_until(lambda: bed.stats_socket.with_name("stats.sock.2").exists(), WAIT_S, "its stats socket")
    bed.daemon.signal(signal.SIGKILL)
    wait_until(lambda: info(bed)["takeovers_failed"] == 1, WAIT_S, "its end to be heard of")
    bed.daemon.wait(WAIT_S)
    bed.daemon = serving
    finish(bed, load)
    assert info(bed)["role"] == "front" and info(bed)["pid"] == serving.pid
