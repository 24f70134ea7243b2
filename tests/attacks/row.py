# SPDX-License-Identifier: Apache-2.0
"""What a row of the attacks is. A row is a function in one of the topics' files: its name is the sentence that the
row shows, its body is the attack, which runs in a process of its own (attacker.py), its docstring names the rules that
it shows, and what must become of it stands in front, as @row(...)."""

import dataclasses
import importlib
import pathlib
import typing

KIB, MIB = 1 << 10, 1 << 20
STREAMS = 100  # that a client may have at a time (`limits.streams`)
SHORT_S, LONG_S = 0.8, 20  # of attack
DEAD_CLUSTER = "cluster-nobody-should-know"  # with an endpoint that nobody is at
TOPICS = pathlib.Path(__file__).resolve().parent
NO_TOPICS = {"attacker", "attack_world", "conftest", "hostile_backend", "judge", "raw_h2", "raw_tcp", "raw_tls", "row",
             "victim_agent"}


@dataclasses.dataclass
class Row:
    """Counters are named as `show workers` does, "h2.abuse_resets"; sums over workers."""
    attack: typing.Callable  # attack(a): a is attacker.py's Attack
    counter: str | tuple = ()  # each must grow
    calm: tuple = ()  # counters that must not grow
    cut_s: float | None = None  # the balancer ends each of the attacker's connections within so many seconds
    spared: bool = False  # the balancer must end none of them
    held: int = MIB  # bytes of pools for each connection that the attacker has at one time
    settles: bool = False  # what each holds in the end is a mebibyte at most
    back_s: float = 60  # within which everything is given back
    stays: dict = dataclasses.field(default_factory=dict)  # objects of a pool that the short form doesn't wait for
    check: typing.Callable | None = None  # check(outcome): an error, or None
    world: str = "web"  # a key of attack_world.WORLDS
    seconds: tuple = (SHORT_S, LONG_S)  # of attack, in the short form and in the long one
    least: int = 0  # units of attack, for which a slow machine gets more time
    long: bool = False  # not in the short form
    ci: bool = True  # in what tools/test runs by itself, unless long; False: others show most of it, in less time
    open: str = ""  # why the row is expected to fail today; who mends that takes it away
    open_in: str = "both"  # or "long": the form in which it is

    @property
    def name(self):
        return self.attack.__name__

    @property
    def counters(self):
        return (self.counter,) if isinstance(self.counter, str) else self.counter

    @property
    def topic(self):
        return self.attack.__module__

    @property
    def sentence(self):
        return self.name.replace("_", " ")

    def is_open(self, form):
        return bool(self.open) and self.open_in in ("both", form)


def row(**expectations):
    def mark(attack):
        attack.row = Row(attack, **expectations)
        return attack
    return mark


def topics():
    return sorted(path.stem for path in TOPICS.glob("*.py")
                  if path.stem not in NO_TOPICS and not path.stem.startswith("test_"))


def all_rows():
    """Of every topic, in the order in which they stand; those of one world together."""
    found = [value.row for topic in topics() for value in vars(importlib.import_module(topic)).values()
             if isinstance(getattr(value, "row", None), Row) and value.row.topic == topic]
    return sorted(found, key=lambda r: (r.world != "web", r.world))
