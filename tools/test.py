#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The one test command.

    tools/test                      everything
    tools/test PART [NAME]          one part, or one test of it
    tools/test long                 the random tests in their long forms (some ten minutes)
    tools/test pci [NAME]           network cards that QEMU emulates (needs root)

Parts: lint; unit; sim (seeded simulations); sanitize (unit and sim under AddressSanitizer and
UndefinedBehaviorSanitizer, those with threads under ThreadSanitizer); clang (the whole build with clang); integ (the
running daemon between real peers, in network namespaces; needs root).

Installs what is missing first (tools/setup). The last line is `N passed, N failed[, N skipped]`.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLANG = {"CC": "clang-14", "CXX": "clang++-14"}
NO_EAL = ["-Deal=false"]
# name of the build directory: (meson options, environment)
BUILDS = {
    "build": ([], {}),
    "build-asan": ([*NO_EAL, "-Db_sanitize=address,undefined"], {}),
    "build-tsan": ([*NO_EAL, "-Db_sanitize=thread"], {}),  # gcc: clang's needs LLVM to name functions
    "build-clang": ([], CLANG),
}
SLOWER = {"build-asan": 4, "build-tsan": 6}  # how much more time a test may take
PARTS = ("lint", "unit", "sim", "sanitize", "clang", "integ")
ASKED_FOR = ("long", "pci")  # not parts of everything
PCI_TEST = "tests/integ/test_pci.py"
# What the unit and sim suites run a short form of: routes against a naive twin, patterns against
# RE2, simulated worlds by seed.
LONG = [
    ["tests/unit/lb/route/test_lb_route_random", "10000000"],
    ["tests/unit/lb/regex/test_lb_regex", "2000000"],
    ["tests/unit/lb/test_lb_swaps", "10000"],
    ["tests/sim/proxy/proxy_sim", "1000", "1000"],
    ["tests/sim/proxy/proxy_sim", "2000", "1000"],
    ["tests/sim/tcp/tcp_sim", "1000", "200"],
    ["tests/sim/balance/balance_random", "1000", "2000"],
    ["tests/sim/xds/xds_sim", "1000", "2000", "100"],
]
LONG_INTEG = [("test_gocp_churn.py", {"SHUNT_GOCP_CHURN": "60 20"}),
              ("test_soak.py", {"SHUNT_SOAK": "20000 2000 60 600"})]
LONG_TIMEOUT_S = 1200
CASES = re.compile(r"\[  (PASSED|FAILED)  \] (\d+) test\(s\)")
GO_AT_LEAST = (1, 25)
INTEG_TIMEOUT_S = 25 * 60
# What test_workers and test_balancing, which have two anyway, do not see.
ON_TWO_WORKERS = [f"tests/integ/test_{name}.py" for name in ("h2spec", "policies", "load_reports")]
INTEG_AT_ONCE = 2  # files of tests; worlds of namespaces do not see each other, and mostly wait

FAILED = []  # names, told again at the very end: a log is often seen by its last lines only

Counts = collections.namedtuple("Counts", "passed failed skipped", defaults=(0, 0, 0))


def add(*counts):
    return Counts(*(sum(c[i] for c in counts) for i in range(3)))


def say(text):
    print(f"\n== {text}", flush=True)


def run(argv, **kwargs):
    """Runs with the output visible; True = exit status 0."""
    return subprocess.run([str(a) for a in argv], cwd=ROOT, stdin=subprocess.DEVNULL, check=False,
                          **kwargs).returncode == 0


def programs(name, suite):
    """What a suite's tests of a build need, as ninja's targets."""
    facts = json.loads(subprocess.run(["meson", "introspect", name, "--tests", "--targets"], cwd=ROOT,
                                      check=True, stdout=subprocess.PIPE).stdout)
    wanted = {i for test in facts["tests"] if f"shunt:{suite}" in test["suite"]
              for i in test["depends"]}
    return [os.path.relpath(path, ROOT / name) for target in facts["targets"]
            if target["id"] in wanted for path in target["filename"]]


def build(name, suite=None):
    """Configures when needed and builds all, or all that a suite's tests run. False, after saying so,
    when that fails."""
    options, extra = BUILDS[name]
    env = {**os.environ, **extra}
    say(f"building {name}")
    # The linker has the last word in CI's log, so keep ninja's progress short there.
    configured = (ROOT / name / "build.ninja").exists() or run(
        ["meson", "setup", name, *options], env=env, stdout=subprocess.DEVNULL)
    if configured and suite:  # what is introspected is of the last configuration
        configured = run(["ninja", "-C", name, "--quiet", "build.ninja"], env=env)
    targets = programs(name, suite) if configured and suite else []
    if configured and run(["ninja", "-C", name, "--quiet", *targets], env=env):
        return True
    print(f"{name} does not build", flush=True)
    FAILED.append(f"{name} does not build")
    return False


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
    """One suite of one build; prints what failed."""
    say(f"{suite} tests of {name}")
    log = ROOT / name / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    ok = run(["meson", "test", "-C", name, "--no-rebuild", "--suite", suite, "--print-errorlogs",
              "--timeout-multiplier", str(SLOWER.get(name, 1)), *only])
    lines = log.read_text().splitlines() if log.exists() else []
    results = [json.loads(line) for line in lines]
    counts = add(Counts(), *map(count_cases, results))
    FAILED.extend(f"{name}: {r['name']} ({r['result']})" for r in results
                  if r["result"] not in ("OK", "SKIP"))
    if not lines or (not ok and not counts.failed):
        counts = add(counts, Counts(failed=1))
    return counts


def tested(name, suites, only=()):
    if not build(name):
        return Counts(failed=1)
    return add(*(meson_test(name, suite, only) for suite in suites))


def sanitize(only):
    asan = tested("build-asan", ["unit", "sim"], only)
    if not build("build-tsan", "threads"):
        return add(asan, Counts(failed=1))
    return add(asan, meson_test("build-tsan", "threads", only))


def clang(_):
    return Counts(passed=1) if build("build-clang") else Counts(failed=1)


def go_version():
    try:
        text = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True,
                              env={**os.environ, "GOTOOLCHAIN": "local"}, timeout=30).stdout
        return tuple(int(n) for n in re.findall(r"\d+", text)[:2])
    except (OSError, subprocess.SubprocessError):
        return (0, 0)


def junit_counts(path):
    if not path.exists():
        return Counts(failed=1)
    root = xml.etree.ElementTree.parse(path).getroot()
    FAILED.extend(f"integ: {case.get('name')}" for case in root.iter("testcase")
                  if case.find("failure") is not None or case.find("error") is not None)
    suites = root.iter("testsuite")
    total = Counts()
    for suite in suites:
        n = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
        bad = n["failures"] + n["errors"]
        total = add(total, Counts(n["tests"] - bad - n["skipped"], bad, n["skipped"]))
    return total


def integ_run(report, what, workers=None, at_once=INTEG_AT_ONCE):
    report.unlink(missing_ok=True)
    argv = [".venv/bin/python", "-m", "pytest", "-v", "--tb=short", "-rs",
            "-n", str(at_once), "--dist", "loadfile",
            "-c", "tests/integ/pytest.ini", f"--junitxml={report}",
            f"--basetemp={ROOT / 'build' / 'integ-tmp'}", *what]
    env = {**os.environ, **({"SHUNT_WORKERS": workers} if workers else {})}
    try:
        ok = run(argv, timeout=INTEG_TIMEOUT_S, env=env)
    except subprocess.TimeoutExpired:
        print(f"the integration tests took more than {INTEG_TIMEOUT_S} s")
        return add(Counts(failed=1), junit_counts(report) if report.exists() else Counts())
    counts = junit_counts(report)
    return counts if ok or counts.failed else add(counts, Counts(failed=1))


def integ(only):
    if not build("build"):
        return Counts(failed=1)
    say("integration tests")
    if go_version() < GO_AT_LEAST:
        print("no Go toolchain of at least 1.25: tests with Go programs will be skipped")
    chosen = ["-k", only[0]] if only else []
    counts = integ_run(ROOT / "build" / "integ.xml",
                       ["tests/integ", f"--ignore={PCI_TEST}", *chosen])
    if only or (os.cpu_count() or 1) < 2:
        return counts
    say("integration tests on two workers")
    return add(counts, integ_run(ROOT / "build" / "integ-two.xml", ON_TWO_WORKERS, "0,1"))


def pci(only):
    if not build("build"):
        return Counts(failed=1)
    if not run(["tools/setup", "pci"]):
        print("without what tools/setup pci installs, tests will be skipped")
    say("tests with emulated cards")
    chosen = ["-k", only[0]] if only else []
    return integ_run(ROOT / "build" / "pci.xml", [PCI_TEST, *chosen], at_once=0)


def run_long():
    if not build("build"):
        return Counts(failed=1)
    total = Counts()
    for command in LONG:
        name = " ".join([pathlib.Path(command[0]).name, *command[1:]])
        say(name)
        try:
            done = subprocess.run([str(ROOT / "build" / command[0]), *command[1:]], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=LONG_TIMEOUT_S, check=False)
            output, ok = done.stdout, done.returncode == 0
        except subprocess.TimeoutExpired as e:
            output, ok = f"{e.stdout}\nmore than {LONG_TIMEOUT_S} s", False
        if not ok:
            print(output[-3000:])
            FAILED.append(name)
        total = add(total, Counts(passed=int(ok), failed=int(not ok)))
    for name, env in LONG_INTEG:
        say(f"{name} with {env}")
        ok = run([".venv/bin/python", "-m", "pytest", "-v", "--tb=short", "-c",
                  "tests/integ/pytest.ini", f"--basetemp={ROOT / 'build' / 'integ-tmp'}",
                  f"tests/integ/{name}"], env={**os.environ, **env}, timeout=LONG_TIMEOUT_S)
        if not ok:
            FAILED.append(name)
        total = add(total, Counts(passed=int(ok), failed=int(not ok)))
    return total


def run_part(part, only):
    if part == "long":
        return run_long()
    if part in ("lint", "unit", "sim"):
        return tested("build", [part], only)
    return {"sanitize": sanitize, "clang": clang, "integ": integ, "pci": pci}[part](only)


def main(argv):
    if any(a in ("-h", "--help") for a in argv) or (argv and argv[0] not in (*PARTS, *ASKED_FOR)) or len(argv) > 2:
        print(__doc__.strip())
        return 0 if argv and argv[0] in ("-h", "--help") else 2
    if not run(["tools/setup"]):
        print("0 passed, 1 failed")
        return 1
    total, parts = Counts(), argv[:1] or PARTS
    for part in parts:
        start = time.monotonic()
        counts = run_part(part, argv[1:])
        total = add(total, counts)
        print(f"{part}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped "
              f"in {time.monotonic() - start:.0f} s", flush=True)
    for name in FAILED:
        print(f"failed: {name}")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"\n{total.passed} passed, {total.failed} failed{skipped}", flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
