# SPDX-License-Identifier: Apache-2.0
"""Processes that take over from one another on interfaces behind AF_XDP, which one process at a time can have: they
move, as a card does (docs/takeover.md)."""

import re
import signal
import socket
import struct
import time

import pytest

from lab import wait_until
from takeover_world import WAIT_S, Calls, Streams, clean, count_resets, follow, info, resets
from testbed import VIP, WORKERS

N_TAKEOVERS = 3
PING_S = 0.005  # between two of them: how well a gap is told

HELLO, WELCOME, TAKE, GIVEN, CABLES = 1, 2, 3, 4, 11
KNOWS_RELAYS = struct.pack(">HHI", 5, 4, 1)  # of one worker

pytestmark = pytest.mark.skipif(len(WORKERS) > 1, reason="af_xdp uses one queue of a veth")


@pytest.fixture(name="bed")
def fixture_bed(make_world, lab):
    world = make_world(device="af_xdp")
    world.bed.settings = f"takeover_socket: {lab.dir}/takeover.sock\ndrain_s: 60\nlame_duck_s: 1\n"
    bed = world.start().bed
    count_resets(lab, "client")
    return bed


class Pings:
    """Echo requests at a pace: the longest time without an answer is the gap of frames."""

    def __init__(self, bed):
        self.process = bed.lab.start("client", f"pings-{len(bed.lab.processes)}",
                                     ["ping", "-D", "-i", str(PING_S), VIP])

    def longest_gap_s(self):
        self.process.signal(signal.SIGINT)
        self.process.wait(WAIT_S)
        times = [float(t) for t in re.findall(r"^\[(\d+\.\d+)\].* bytes from", self.process.output(), re.M)]
        assert len(times) > 10
        return max(b - a for a, b in zip(times, times[1:]))


def nobody_was_reset(bed):
    return resets(bed.lab, "client") == 0


@pytest.mark.timeout(300)
def test_fl_120_takeovers_of_af_xdp_lose_nothing(bed):
    """Streams outlive three generations, through each of the processes that came."""
    streams = Streams(bed)
    calls = Calls(bed)
    older = []
    for number in range(2, N_TAKEOVERS + 2):
        pings = Pings(bed)
        older.append(follow(bed, number))
        time.sleep(1)
        told = info(bed)
        assert told["generation"] == number and told["role"] == "front"
        print(f"gap: {pings.longest_gap_s() * 1000:.0f} ms without an answer, "
              f"takeover_gap_ms {told['takeover_gap_ms']:.0f}")
    assert info(bed)["processes_behind"] == N_TAKEOVERS
    (worker,) = bed.show_workers()
    assert worker["relay"]["given"] > 0 and worker["relay"]["taken"] > 0 and worker["relay"]["malformed"] == 0
    assert streams.finish()
    wait_until(lambda: not any(p.alive() for p in older), WAIT_S, "older processes to end")
    assert calls.finish()
    assert [p.wait(1) for p in older] == [0] * len(older)
    assert all(clean(bed, p.name) for p in older)
    assert nobody_was_reset(bed)


def say(talk, kind, more=b""):
    talk.send(b"SHTO" + struct.pack(">HH", 1, kind) + more)
    while (told := struct.unpack(">H", talk.recv(600)[6:8])[0]) == CABLES:
        pass
    return told


@pytest.mark.timeout(200)
def test_fl_120_a_newer_process_that_fails_gives_af_xdp_back(bed, lab):
    """One that is killed before it asks for the interfaces, and one that ends with them in its hands."""
    serving = bed.daemon
    streams, calls = Streams(bed), Calls(bed)
    bed.start_daemon(wait=False, words=["--takeover"], name="shuntd-dies")
    wait_until(lambda: info(bed)["newer"], WAIT_S, "the newer process")
    bed.daemon.signal(signal.SIGKILL)
    bed.daemon.wait(WAIT_S)
    bed.daemon = serving
    wait_until(lambda: info(bed)["takeovers_failed"] == 1, WAIT_S, "its end to be heard of")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as talk:
        talk.settimeout(WAIT_S)
        talk.connect(str(lab.dir / "takeover.sock"))
        assert say(talk, HELLO, KNOWS_RELAYS) == WELCOME
        assert say(talk, TAKE) == GIVEN
    wait_until(lambda: info(bed)["takeovers_failed"] == 2, WAIT_S, "the interfaces to be taken back")
    wait_until(lambda: all(p["link"] == "up" for p in bed.show("ports")), WAIT_S, "them to be open again")
    time.sleep(1)  # of load
    assert streams.finish() and calls.finish()
    assert info(bed)["role"] == "front" and info(bed)["pid"] == serving.pid
    assert nobody_was_reset(bed)


def test_fl_120_who_lacks_an_interface_of_the_older_one_is_refused(bed):
    """So is one that would have it by AF_PACKET."""
    serving = bed.daemon
    bed.device = "af_packet"
    bed.start_daemon(wait=False, words=["--takeover"], name="shuntd-other")
    assert bed.daemon.wait(WAIT_S) == 1
    assert "net_af_xdp,iface=lb-c is the older process's, and missing here" in bed.daemon.output()
    bed.device, bed.daemon = "af_xdp", serving
    assert info(bed)["role"] == "front"
    assert bed.run_h2load(requests=100).perfect
