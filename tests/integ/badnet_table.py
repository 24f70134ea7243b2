# SPDX-License-Identifier: Apache-2.0
"""The bad networks of tools/badnet. A cell is a condition, where it is, which way the bodies go, over how many
connections, and by which IP. Faults are told in the words of a faultlink (docs/badnet.md)."""

import dataclasses

SIDES = {"client": "client", "backend": "backends"}  # the namespace at the far end
WAYS = ("down", "up")  # an answer's body, a request's
CONNECTIONS = (1, 8)
KIB, MIB = 1 << 10, 1 << 20
BOTTLENECK = "rate=200mbit queue=300"


@dataclasses.dataclass(frozen=True)
class Condition:
    name: str
    rtt_ms: float
    both: str = ""  # faults of both directions, and of the ones that have the bodies or what acknowledges them
    data: str = ""
    acks: str = ""
    length: int = 4 * MIB  # of all bodies of a cell together
    limit_s: int = 60
    requests: int = 1  # one after the other, on each connection


@dataclasses.dataclass(frozen=True)
class Cell:
    condition: Condition
    side: str
    way: str
    connections: int
    family: int = 4

    def __str__(self):
        return f"{self.condition.name}, {self.side} {self.way} x{self.connections}" + ", IPv6" * (self.family == 6)

    @property
    def path(self):
        """The link's words without its faults."""
        return f"{BOTTLENECK} delay={self.condition.rtt_ms * 500:.0f}us"

    def faults(self):
        """{"forth": words, "back": words} of the link at this side, where forth leads to the balancer."""
        c = self.condition
        base = f"{self.path} {c.both} "
        forth = (self.side == "client") == (self.way == "up")
        return {"forth": base + (c.data if forth else c.acks), "back": base + (c.acks if forth else c.data)}


CONDITIONS = [
    Condition("clean, RTT 0.2 ms", 0.2, length=16 * MIB),
    Condition("clean, RTT 20 ms", 20, length=16 * MIB),
    Condition("clean, RTT 100 ms", 100, length=16 * MIB),
    Condition("loss 0.5 %, RTT 0.2 ms", 0.2, "loss=0.5%", length=16 * MIB),
    Condition("loss 1 %, RTT 0.2 ms", 0.2, "loss=1%", length=16 * MIB),
    Condition("loss 5 %, RTT 0.2 ms", 0.2, "loss=5%"),
    Condition("loss 0.1 %, RTT 20 ms", 20, "loss=0.1%"),
    Condition("loss 0.5 %, RTT 20 ms", 20, "loss=0.5%"),
    Condition("loss 1 %, RTT 20 ms", 20, "loss=1%"),
    Condition("loss 2 %, RTT 20 ms", 20, "loss=2%"),
    Condition("loss 5 %, RTT 20 ms", 20, "loss=5%", length=2 * MIB),
    Condition("loss 1 %, RTT 100 ms", 100, "loss=1%", length=2 * MIB),
    Condition("bursts, RTT 20 ms", 20, "burst=0.2%:25%"),
    Condition("long bursts, RTT 20 ms", 20, "burst=0.1%:5%"),
    Condition("5 % of ACKs lost, RTT 20 ms", 20, acks="loss=5%"),
    Condition("reorder 5 % < 4 ms, RTT 20 ms", 20, "reorder=5%:4ms"),
    Condition("reorder 1 % < 20 ms, RTT 20 ms", 20, "reorder=1%:20ms"),
    Condition("jitter < 10 ms, RTT 20 ms", 20, "jitter=10ms"),
    Condition("duplicate 5 %, RTT 20 ms", 20, "duplicate=5%"),
    Condition("corrupt 1 %, RTT 20 ms", 20, "corrupt=1%"),
    Condition("queue of 20 at 50 Mbit/s, RTT 20 ms", 20, "rate=50mbit queue=20", length=8 * MIB),
    Condition("queue of 1000 at 20 Mbit/s, RTT 20 ms", 20, "rate=20mbit queue=1000"),
    Condition("+400 ms once in 2 s, RTT 100 ms", 100, "rate=20mbit pause=2s:400ms", length=8 * MIB),
    Condition("path MTU 1300, RTT 20 ms", 20, "mtu=1300"),
    Condition("path MTU 1300, silent, RTT 20 ms", 20, "mtu=1300 silent=1", limit_s=40),
    Condition("dark for 1 s, RTT 20 ms", 20, "rate=10mbit blackout=1500ms:1s"),
    Condition("data dark for 5 s, RTT 20 ms", 20, "rate=10mbit", data="blackout=1500ms:5s"),
    Condition("dark for 5 s, RTT 20 ms", 20, "rate=10mbit blackout=1500ms:5s"),
    Condition("dark for 15 s, RTT 20 ms", 20, "rate=10mbit blackout=1500ms:15s"),
    Condition("loss 10 %, RTT 2 s", 2000, "loss=10%", length=64 * KIB, limit_s=120),
]

CELLS = [Cell(condition, side, way, connections)
         for condition in CONDITIONS for side in SIDES for way in WAYS for connections in CONNECTIONS]

CALL_LENGTH = 200


def calls(loss, rtt_ms, connections, requests):
    """Cells of calls of 200 bytes, whose latencies are what counts."""
    condition = Condition(f"calls of {CALL_LENGTH} bytes, loss {loss}, RTT {rtt_ms} ms", rtt_ms,
                          f"loss={loss.replace(' ', '')}", length=CALL_LENGTH * connections * requests, limit_s=120,
                          requests=requests)
    return [Cell(condition, side, way, connections) for side in SIDES for way in WAYS]


CALLS = calls("1 %", 20, connections=10, requests=1000)
# The same where only what the balancer sends is lost.
CALLS += [dataclasses.replace(c, condition=dataclasses.replace(
    c.condition, name=f"{c.condition.name} from us", both="", data=c.condition.both))
          for c in CALLS if (c.side, c.way) in (("client", "down"), ("backend", "up"))]

# The short form: nothing of this may fail or alter anything, however slow the machine is.
SHORT_CONDITIONS = [
    Condition("clean, RTT 2 ms", 2),
    Condition("loss 2 %, RTT 2 ms", 2, "loss=2%"),
    Condition("bursts, RTT 2 ms", 2, "burst=0.2%:25%"),
    Condition("5 % of ACKs lost, RTT 2 ms", 2, acks="loss=5%"),
    Condition("reorder 5 % < 4 ms, RTT 2 ms", 2, "reorder=5%:4ms"),
    Condition("duplicate 5 % and jitter < 2 ms, RTT 2 ms", 2, "duplicate=5% jitter=2ms"),
    Condition("corrupt 2 %, RTT 2 ms", 2, "corrupt=2%"),
    Condition("queue of 20 at 50 Mbit/s, RTT 2 ms", 2, "rate=50mbit queue=20"),
    Condition("path MTU 1300, RTT 2 ms", 2, "mtu=1300"),
    Condition("+200 ms once in 600 ms, RTT 20 ms", 20, "pause=600ms:200ms"),
    Condition("dark for 1 s, RTT 2 ms", 2, "rate=10mbit blackout=400ms:1s"),
]
SHORT_LENGTH = 1 * MIB
SHORT = [Cell(dataclasses.replace(condition, length=SHORT_LENGTH), side, way, 8 if (number + (way == "up")) % 2 else 1)
         for number, condition in enumerate(SHORT_CONDITIONS) for side in SIDES for way in WAYS]
# One of each four over IPv6, each time another one.
SHORT6 = [dataclasses.replace(SHORT[4 * number + number % 4], family=6) for number in range(len(SHORT_CONDITIONS))]
# Only where the balancer sends: a kernel that does never comes through.
SILENT = Condition("path MTU 1300, silent, RTT 2 ms", 2, "mtu=1300 silent=1", length=SHORT_LENGTH)
SHORT_SILENT = [Cell(SILENT, side, way, connections, family) for side, way in (("client", "down"), ("backend", "up"))
                for connections, family in ((8, 4), (1, 6))]
SHORT_CALLS = calls("1 %", 2, connections=4, requests=100)
