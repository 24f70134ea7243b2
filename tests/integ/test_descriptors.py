# SPDX-License-Identifier: Apache-2.0
"""A daemon whose descriptors run out, by what its local clients hold or by its limit."""

import os
import subprocess
import sys

import pytest

from lab import wait_until

METRICS = ("127.0.0.1", 9464)
CSDS = ("127.0.0.1", 50052)
SETTINGS = f"metrics: {{listen: '{METRICS[0]}:{METRICS[1]}'}}\ncsds: {{listen: '{CSDS[0]}:{CSDS[1]}'}}\n"
CONNECTIONS = 64  # of the status port, at most
# Of one connection of libgrpc's: its own descriptor, and the daemon's second one. Those that have been told to end have
# them for a moment longer.
EACH = 2
SLACK = 40
WAIT_S = 30

HOLD = """
import socket, sys, time
held = []
for i in range(int(sys.argv[3])):
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
    s.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    held.append(s)
    time.sleep(.005)
print("held", flush=True)
s = held[-1]
s.settimeout(30)
print("newest", len(s.recv(1)), flush=True)
time.sleep(60)
"""


@pytest.fixture(name="observed")
def fixture_observed(make_world):
    world = make_world()
    world.bed.settings += SETTINGS
    return world.start()


def n_descriptors(bed):
    return len(os.listdir(f"/proc/{bed.daemon.pid}/fd"))


def lowest_free(bed):
    """The limit is one of their numbers."""
    taken = {int(name) for name in os.listdir(f"/proc/{bed.daemon.pid}/fd")}
    return next(n for n in range(len(taken) + 1) if n not in taken)


def ready(bed):
    url = f"http://{METRICS[0]}:{METRICS[1]}/ready"
    return bed.lab.exec("lb", ["curl", "-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", url],
                        timeout=30, check=False).stdout


def test_th_62_connections_to_the_status_port_leave_descriptors_for_others(observed):
    bed = observed.bed
    before = n_descriptors(bed)
    holder = bed.lab.start("lb", "holder", [sys.executable, "-c", HOLD, *map(str, CSDS), "400"])
    wait_until(lambda: "newest 1" in holder.output(), 60, "400 connections")
    wait_until(lambda: n_descriptors(bed) < before + EACH * CONNECTIONS + SLACK, WAIT_S, "the oldest ones are gone")
    assert n_descriptors(bed) > before + CONNECTIONS // 2
    assert ready(bed) == "200"
    holder.kill()
    wait_until(lambda: n_descriptors(bed) < before + SLACK, WAIT_S, "all of them are gone")


def test_without_a_descriptor_requests_are_served_and_no_device_is_given_up(observed):
    bed = observed.bed
    assert bed.run_h2load(requests=500).perfect
    limit = lowest_free(bed)
    subprocess.run(["prlimit", "--pid", str(bed.daemon.pid), f"--nofile={limit}:4096"], check=True)
    assert ready(bed) == "000"
    report = bed.run_h2load(requests=3000, clients=4, streams=1)
    assert report.perfect, report
    assert bed.lab.exec("lb", ["sleep", "2"]).returncode == 0  # ports are looked at each second
    assert bed.run_h2load(requests=500).perfect
    subprocess.run(["prlimit", "--pid", str(bed.daemon.pid), "--nofile=4096:4096"], check=True)
    wait_until(lambda: ready(bed) == "200", WAIT_S, "metrics again")
    assert "device gone" not in bed.daemon.output()
    assert all(port["link"] == "up" for port in bed.show("ports")), bed.show("ports")
