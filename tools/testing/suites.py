# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/test that are suites of Meson's: lint, unit, sim, the sanitizers; and the build with clang."""

import json
import os
import pathlib
import re
import subprocess

from testing.builds import build
from testing.report import FAILED, ROOT, Counts, Stage, add, run

# How much more time a test may take than on a machine of its own: others may have most of this one.
SLOWER = {"build": 3, "build-asan": 8, "build-tsan": 12}
# Tests at once: those of threads and servers wait for each other more than they work.
AT_ONCE = max(1, 3 * (os.cpu_count() or 1) // 2)
TCP_SEEDS = os.environ.get("SHUNT_TCP_SEEDS", "1 20000").split()  # the first one, and how many
if len(TCP_SEEDS) != 2 or not all(word.isdigit() for word in TCP_SEEDS):
    raise SystemExit("SHUNT_TCP_SEEDS: the first seed and how many, as in '1 20000'")
# What the unit and sim suites run a short form of: routes against a naive twin, patterns against
# RE2, simulated worlds by seed.
LONG = [
    ["tests/unit/lb/route/test_lb_route_random", "10000000"],
    ["tests/unit/lb/route/test_lb_chain_random", "10000000"],
    ["tests/unit/lb/regex/test_lb_regex", "2000000"],
    ["tests/unit/lb/test_lb_swaps", "10000"],
    ["tests/unit/tls/test_tls_openssl", "100000000"],
    ["tests/unit/h1/test_h1_llhttp", "tests/unit/h1/smuggling.rows", "10000000"],
    ["tests/sim/proxy/proxy_sim", "1000", "1000"],
    ["tests/sim/proxy/proxy_sim", "2000", "1000"],
    ["tests/sim/tcp/tcp_linux_peer", "1", "200"],
    ["tests/sim/tcp/tcp_random_input", "40000"],
    ["tests/sim/tcp/tcp_sim", *TCP_SEEDS],
    ["tests/sim/balance/balance_random", "1000", "2000"],
    ["tests/sim/xds/xds_sim", "1000", "2000", "100"],
]
LONG_INTEG = [("test_gocp_churn.py", {"SHUNT_GOCP_CHURN": "60 20"}),
              ("test_blackouts.py", {"SHUNT_BLACKOUTS": "1 5 15 25 40"}),
              ("test_soak.py", {"SHUNT_SOAK": "20000 2000 60 600"}),
              ("test_soak_tls.py", {"SHUNT_SOAK_TLS": "600"}),
              ("test_grpc.py", {"SHUNT_CALLS": "20000", "SHUNT_STREAM_MIB": "1024"}),
              ("test_tls.py", {"SHUNT_ROTATIONS": "20"}),
              ("test_tls_rotation.py", {"SHUNT_ROTATIONS": "60"}),
              *((f"test_tls_peers{peers}.py", {"SHUNT_TLS_MEGABYTES": "100"})
                for peers in ("", "_go", "_grpc", "_proxies", "_relays")),
              ("test_tls_scanners.py", {"SHUNT_TESTSSL": "1"})]
LONG_TIMEOUT_S = 1200 + int(TCP_SEEDS[1]) // 50  # of these one takes six milliseconds alone on a CPU
CASES = re.compile(r"\[  (PASSED|FAILED)  \] (\d+) test\(s\)")


def count_cases(result):
    """Cases of one meson test: those that cmocka counted, else the program as one."""
    text = (result.get("stdout") or "") + (result.get("stderr") or "")  # cmocka sums up on the latter
    cases = {kind: sum(int(n) for k, n in CASES.findall(text) if k == kind)
             for kind in ("PASSED", "FAILED")}
    if result["result"] == "SKIP":
        return Counts(skipped=1)
    if result["result"] == "OK":
        return Counts(passed=max(1, cases["PASSED"]))
    return Counts(passed=cases["PASSED"], failed=max(1, cases["FAILED"]))


def meson_test(name, suite, only=()):
    """One suite of one build, or the tests of these names; prints what failed."""
    log = ROOT / name / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    # Meson has libc write to all memory that is had and given back. A simulated proxy reserves much and uses little: it
    # takes ten times as long then.
    unwritten = {"MALLOC_PERTURB_": "0"} if suite == "sim" else {}
    with Stage(f"{suite} tests of {name}"):
        ok = run(["meson", "test", "-C", name, "--no-rebuild", "--suite", suite, "--print-errorlogs",
                  "--num-processes", str(AT_ONCE), "--timeout-multiplier", str(SLOWER.get(name, 3)), *only],
                 env={**os.environ, **unwritten})
    lines = log.read_text().splitlines() if log.exists() else []
    results = [json.loads(line) for line in lines]
    counts = add(Counts(), *map(count_cases, results))
    FAILED.extend(f"{name}: {r['name']} ({r['result']})" for r in results
                  if r["result"] not in ("OK", "SKIP"))
    if not lines or (not ok and not counts.failed):
        counts = add(counts, Counts(failed=1))
    return counts


def tested(name, suites, only):
    if not build(name):
        return Counts(failed=1)
    return add(*(meson_test(name, suite, only) for suite in suites))


def lint(only):
    return tested("build", ["lint"], only)


def unit(only):
    return tested("build", ["unit"], only)


def sim(only):
    return tested("build", ["sim"], only)


def build_threads():
    return build("build-tsan", "threads")


def sanitize(only):
    asan = tested("build-asan", ["unit", "sim"], only)
    if not build_threads():
        return add(asan, Counts(failed=1))
    return add(asan, meson_test("build-tsan", "threads", only))


def clang(_):
    return Counts(passed=1) if build("build-clang") else Counts(failed=1)


def other_builds(_):
    """Clang's, behind those of sanitize, which then finds them made, or tells why not."""
    build("build-asan")
    build_threads()
    return clang([])


def in_time(argv, env=()):
    """Runs a long form, bounded. (whether it passed, what it said)"""
    try:
        done = subprocess.run(argv, text=True, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LONG_TIMEOUT_S, check=False,
                              env={**os.environ, **dict(env)})
        return done.returncode == 0, done.stdout
    except FileNotFoundError:
        return False, "it was not built: tools/setup, and configure the build anew"
    except subprocess.TimeoutExpired as e:
        return False, f"{e.stdout}\nmore than {LONG_TIMEOUT_S} s"


def long_forms(only):
    if not build("build"):
        return Counts(failed=1)
    runs = [(" ".join([pathlib.Path(program).name, *words]), [str(ROOT / "build" / program), *words], {})
            for program, *words in LONG]
    runs += [(f"{name} with {env}", [".venv/bin/python", "-m", "pytest", "-v", "--tb=short", "-c",
                                     "tests/integ/pytest.ini", f"--basetemp={ROOT / 'build' / 'integ-tmp'}",
                                     f"tests/integ/{name}"], env) for name, env in LONG_INTEG]
    total = Counts()
    for name, argv, env in runs:
        if not all(part in name for part in only):
            continue
        with Stage(name):
            ok, output = in_time(argv, env)
        if not ok:
            print(output[-3000:])
            FAILED.append(name)
        total = add(total, Counts(passed=int(ok), failed=int(not ok)))
    return total
