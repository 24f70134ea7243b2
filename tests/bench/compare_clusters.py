# SPDX-License-Identifier: Apache-2.0
"""What a large configuration costs shuntd and Envoy, by ADS, as tests/bench/scale.py measures it. Both
connect on demand: nobody is at the endpoints."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
CASES = {"shunt": "shunt/ads_sotw_on_demand", "envoy": "envoy/ads_sotw"}
N, ENDPOINTS = 10_000, 10
TIMEOUT_S = 300


class Taker:
    """Whoever takes the configuration, as compare_rows wants its subjects."""

    transport = "ADS"

    def __init__(self, name):
        self.name = name
        self.is_peer = name != "shunt"


TAKERS = {name: Taker(name) for name in CASES}


def figures(build, names):
    """(who, what, unit, value) of each of these that is here."""
    only = [word for name in dict.fromkeys(names) if name in CASES for word in ("--only", CASES[name])]
    if not only:
        return
    if not PYTHON.exists():
        print("no Python of the tests (tools/setup): 10,000 clusters are left out", file=sys.stderr)
        return
    command = [PYTHON, ROOT / "tests/bench/scale.py", build, "clusters", "--clusters", N, "--endpoints", ENDPOINTS,
               *only]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=True)
    what = f"{N} clusters of {ENDPOINTS} endpoints"
    for row in map(json.loads, done.stdout.splitlines()):
        taker = TAKERS[row["impl"]]
        yield taker, f"{what}: until they serve", "s", row["wall_s"]
        yield taker, f"{what}: CPU until then", "s", row["all_cpu_s"]
        yield taker, f"{what}: memory", "MiB", row["mib_later"]
