# SPDX-License-Identifier: Apache-2.0
"""floods.py BUILD [--seconds S] [--repeats N] [--only NAME] [--rate N]: how long requests on established TLS
connections wait at half of the daemon's highest rate, without a flood and with each. Prints a JSON object a line;
tools/bench runs it.

Clients and attackers are in one namespace, behind one veth; attacks are rows of tests/attacks (row.py), begun anew when
all of their connections are cut. The worker is alone on its core, and sleeps when there is nothing to do, as by
default. On the other core is everybody else: first those whose time the latency has in it (the backend and shunt-load),
then the daemon's other threads, of which one makes the handshakes, and in what is left the attacker.

The two cores share more than they should, the more where they are two threads of one, and what the worker sends to an
attacker passes the attacker's kernel on the worker's core. So the same attack also goes elsewhere, to an nghttpd behind
a veth of its own: what the victim waits longer then is no fault of the daemon's. It lacks that kernel's part.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LABEL = "shunt-floods"
LIMIT_S = 330  # no repeat begins that would end later
# Topic and row of tests/attacks, by the name of --only.
FLOODS = {
    "handshakes": ("tls_handshakes", "handshakes_in_number_disturb_nobody"),
    "hellos": ("tls_handshakes", "hellos_alone_in_number_disturb_nobody"),
    "half-handshakes": ("tls_handshakes", "half_handshakes_of_many_sources_leave_places_for_others"),
    "slow-hellos": ("tls_handshakes", "hellos_that_trickle_end_after_ten_seconds"),
    "one-byte-records": ("tls_records", "records_of_one_byte_disturb_nobody"),
    "key-updates": ("tls_records", "key_updates_in_number_cost_their_connection"),
    "empty-records": ("tls_records", "empty_records_cost_their_connection"),
}


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=3, help="of each load")
    parser.add_argument("--repeats", type=int, default=3, help="of each flood, as far as six minutes have room")
    parser.add_argument("--only", choices=FLOODS, action="append", help="of the floods; several")
    parser.add_argument("--rate", type=int, help="requests a second, instead of half of the highest rate")
    return parser.parse_args()


def table_row(name, samples, half):
    """Of one flood's samples, [{way: Sample}]: medians of the repeats."""
    def median(way, what):
        return statistics.median(getattr(s[way], what) for s in samples)

    def times(way):
        return round(statistics.median(s[way].p99_us / max(1e-3, s["quiet"].p99_us) for s in samples), 2)
    ways = samples[0]
    return {"bench": "floods", "flood": name, "rate": half, "repeats": len(samples),
            "attack_rate": round(median("flood", "attack_rate"), 1),
            **{f"{what}_{way}": round(median(way, what), 1) for way in ways for what in ("p50_us", "p99_us")},
            **{f"busy_{way}": round(median(way, "busy"), 3) for way in ways},
            "times": times("flood"), "times_elsewhere": times("elsewhere"),
            "failed": sum(s[way].failed for s in samples for way in ways),
            "why": {k: n for s in samples for way in ways for k, n in s[way].why.items()},
            **{f"pools_{way}": round(median(way, "pools")) for way in ways},
            "process_grown": max(s["flood"].grown for s in samples)}


def rows(world, seconds, repeats, only=None, rate=None):
    """A row for the highest rate, then one for each flood."""
    highest = world.highest(seconds)
    half, began = rate or highest["half"], time.monotonic()
    yield {"bench": "floods", "flood": None, **highest, "half": half}
    samples = {name: [] for name in only or FLOODS}
    for repeat in range(repeats):
        if repeat and (time.monotonic() - began) * (repeat + 1) / repeat > LIMIT_S:
            print(f"no time for more than {repeat} of {repeats} repeats", file=sys.stderr, flush=True)
            break
        for name, found in samples.items():
            found.append({"quiet": world.load(half, seconds), "flood": world.load(half, seconds, FLOODS[name]),
                          "elsewhere": world.load(half, seconds, FLOODS[name], elsewhere=True)})
            told = ", ".join(f"{way} {s.p99_us:.0f}" for way, s in found[-1].items())
            print(f"{repeat + 1}/{repeats} {name}: p99 {told} us", file=sys.stderr, flush=True)
    for name, found in samples.items():
        yield table_row(name, found, half)


def main():
    args = parsed()
    os.environ["SHUNT_BUILD"] = str(args.build.resolve())
    for folder in ("integ", "attacks"):
        sys.path.insert(0, str(HERE.parent / folder))
    from lab import SUPPORT_CPU, Lab  # pylint: disable=import-outside-toplevel  # they read the variable
    from floods_world import FloodsWorld  # pylint: disable=import-outside-toplevel
    with Lab(LABEL) as lab:
        world = FloodsWorld(lab)
        os.sched_setaffinity(0, {SUPPORT_CPU})  # the worker's core is its own
        for row in rows(world, args.seconds, args.repeats, args.only, args.rate):
            print(json.dumps(row, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
