# SPDX-License-Identifier: Apache-2.0
"""Processes that take over from one another in a Testbed, under load (docs/takeover.md)."""

import json
import socket
import struct

from lab import wait_until
from testbed import SENDS_AGAIN

WAIT_S = 30
LEAST = 20  # calls of each thread and messages of each stream of a load, however slow the machine is
# Messages, and a field of the first one.
HELLO, WELCOME, TAKE, GIVEN, OPENED, FREE, SERVING = range(1, 8)
ONE_WORKER = struct.pack(">HHI", 5, 4, 1)
COUNT_RESETS = """
table inet resets {
  counter seen { }
  chain input {
    type filter hook input priority 0;
    OF tcp flags & rst == rst counter name seen
  }
}
"""


def quantiles(figures):
    ordered = sorted(figures)
    p50, p90, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.9, 0.99))
    return f"p50 {p50}, p90 {p90}, p99 {p99}, max {ordered[-1]}, of {len(ordered)}"


def count_resets(lab, ns, of=""):
    """From now on, of connections that end in that namespace; of: nft's words for some of them."""
    lab.nft(ns, COUNT_RESETS.replace("OF", of))


def resets(lab, ns):
    rules = json.loads(lab.exec(ns, ["nft", "-j", "list", "counters"]).stdout)["nftables"]
    return next(r["counter"]["packets"] for r in rules if "counter" in r)


class Calls:
    """Unary calls without a pause, from now until finish(); every one must succeed. where: namespace and target, if
    others."""

    def __init__(self, bed, **where):
        self.bed = bed
        name = "steady-" + where.get("ns", "client")
        self.stop_file = bed.lab.dir / f"stop-{name}"
        self.longest_ms = None
        self.process = bed.start_calls(name, "steady", stop_file=str(self.stop_file), options=SENDS_AGAIN,
                                       least=LEAST, **where)
        wait_until(lambda: "ready" in self.process.output(), WAIT_S, "calls")

    def finish(self):
        self.stop_file.touch()
        told = self.bed.calls_result(self.process)
        self.longest_ms = told["longest_ms"]
        return told["calls"]


def info(bed):
    return bed.show("info")


def follow(bed, number, env=None):
    """Starts a process that takes over, and waits until it has."""
    older = bed.daemon
    bed.start_daemon(wait=False, words=["--takeover"], name=f"shuntd-{number}", env=env)
    wait_until(lambda: bed.daemon.alive() and info(bed)["pid"] == bed.daemon.pid and
               info(bed)["state"] == "ready", WAIT_S, "the newer process in front")
    return older


class Streams:
    """Streams that stay open until finish(); no message of them may be lost. where: as Calls."""

    def __init__(self, bed, **where):
        self.bed = bed
        name = "streams-" + where.get("ns", "client")
        self.stop_file = bed.lab.dir / f"stop-{name}"
        self.process = bed.start_calls(name, "held_chats", stop_file=str(self.stop_file), least=LEAST, **where)
        wait_until(lambda: "ready" in self.process.output(), WAIT_S, "streams")

    def finish(self):
        self.stop_file.touch()
        return min(self.bed.calls_result(self.process)["rounds"])


class Impostor:
    """A newer process that says only what the test says."""

    def __init__(self, lab):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(str(lab.dir / "takeover.sock"))

    def say(self, kind, fields=b""):
        self.socket.send(b"SHTO" + struct.pack(">HH", 1, kind) + fields)
        return struct.unpack(">H", self.socket.recv(600)[6:8])[0]


def clean(bed, name):
    """Of a daemon that was followed: it ended by itself, in order, without a lame duck, and cut nothing."""
    log = (bed.lab.dir / f"{name}.log").read_text()
    return "requests_cut=0" in log and 'msg="lame duck"' not in log
