# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/test that run under pytest: the running daemon between real peers, and under attack."""

import os
import re
import subprocess
import xml.etree.ElementTree

from testing.builds import build
from testing.report import FAILED, ROOT, Counts, Stage, add, run

TESTS = ROOT / "tests" / "integ"
ATTACKS = ROOT / "tests" / "attacks"
PCI_TESTS = [TESTS / f"test_{name}.py" for name in ("pci", "pci_bond", "pci_kernel", "pci_takeover", "pci_tunnels")]
FLEET_TESTS = [TESTS / f"test_{name}.py" for name in ("fleet", "fleet_upgrade")]
MESH_TESTS = [TESTS / "test_istiod.py", TESTS / "test_psm_interop.py", TESTS / "test_tracing_collector.py"]
ALERTS_TEST = TESTS / "test_alerts.py"
SERVICE_TEST = TESTS / "test_service.py"
GO_AT_LEAST = (1, 25)
TIMEOUT_S = 25 * 60
PCI_TIMEOUT_S = 45 * 60
FLEET_TIMEOUT_S = 60 * 60
MESH_TIMEOUT_S = 60 * 60  # the first time, when istiod is built
ATTACKS_TIMEOUT_S = 90 * 60
STARTED = ["ctrl/shuntd", "tools/shuntctl", "tools/shunt-xds/shunt-xds"]  # by the attacks, of ours
# A finding is in the daemon's log, which is looked at.
SANITIZER_OPTIONS = {"UBSAN_OPTIONS": "print_stacktrace=1",
                     "LSAN_OPTIONS": f"print_suppressions=0:suppressions={ATTACKS / 'lsan.supp'}"}
# What test_workers and test_balancing, which have two anyway, do not see.
ON_TWO_WORKERS = [TESTS / f"test_{name}.py" for name in ("h2spec", "policies", "load_reports")]
# Files at once: worlds of namespaces do not see each other, and a test keeps a sixth of the machine busy.
AT_ONCE = 4
# What tools/compare starts goes before all else on its core. One file stands that beside it, at a time.
BESIDE_COMPARE = [TESTS / f"test_{name}.py" for name in ("compare", "fallback", "proxied", "scale")]
# So that no long one is left alone at the end.
LONGEST_FIRST = [TESTS / f"test_{name}.py" for name in (
    "takeover", "status_page", "load", "faults", "actions", "takeover_memif", "balancing", "tidy", "takeover_bonds",
    "grpc", "devices", "balance_differential", "validation", "tunnels", "alerts", "connect_differential", "soak",
    "soak_tls", "shunt_xds_proxy", "status_tls", "stats", "card", "tls_resumption", "trunks", "blackouts", "cold_start",
    "fleet", "tls_peers", "xds", "tls", "differential", "workers", "daemon", "metrics", "gateways", "vips",
    "load_reports")]


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


def pytest(report, what, workers=None, at_once=0):
    """Runs test files, in this order and so many at once; counts what Junit's report says."""
    return counted(report, ["-rs", "-n", str(at_once), "--dist", "loadfile", "--no-loadscope-reorder", *what],
                   TESTS, {"SHUNT_WORKERS": workers} if workers else {})


def counted(report, words, folder, env, timeout_s=TIMEOUT_S):
    """Runs pytest with these words and the pytest.ini of a folder; counts what Junit's report says."""
    report.unlink(missing_ok=True)
    argv = [".venv/bin/python", "-m", "pytest", "-v", "--tb=short", "-c", folder / "pytest.ini",
            f"--junitxml={report}", f"--basetemp={ROOT / 'build' / 'integ-tmp'}", *words]
    try:
        ok = run(argv, timeout=timeout_s, env={**os.environ, **env})
    except subprocess.TimeoutExpired:
        print(f"the tests of {folder.name} took more than {timeout_s} s")
        return add(Counts(failed=1), junit_counts(report) if report.exists() else Counts())
    counts = junit_counts(report)
    if not ok and counts == Counts():
        print(f"no test of {folder.name} has such a name")
    return counts if ok or counts.failed else add(counts, Counts(failed=1))


def files():
    """All test files but those that have a part of their own, the longest first."""
    first = [*BESIDE_COMPARE, *LONGEST_FIRST]
    return [*first, *sorted(set(TESTS.glob("test_*.py")) - {*PCI_TESTS, SERVICE_TEST, *MESH_TESTS, *first})]


def integ_files(chosen):
    """These files: some beside what wants a core, the others, and those that are to run on two workers again."""
    if not build("build"):
        return Counts(failed=1)
    if go_version() < GO_AT_LEAST:
        print("no Go toolchain of at least 1.25: tests with Go programs will be skipped")
    beside = [path for path in chosen if path in BESIDE_COMPARE]
    others = [path for path in chosen if path not in BESIDE_COMPARE]
    runs = [("beside tools/compare", "integ-compare.xml", beside, None, 2),
            (f"{AT_ONCE} files at once", "integ.xml", others, None, AT_ONCE)]
    if (os.cpu_count() or 1) >= 2:
        again = [path for path in ON_TWO_WORKERS if path in chosen]
        runs.append(("on two workers", "integ-two.xml", again, "0,1", len(ON_TWO_WORKERS)))
    total = Counts()
    for how, report, what, workers, at_once in runs:
        if what:
            with Stage(f"integration tests, {how}"):
                total = add(total, pytest(ROOT / "build" / report, what, workers, at_once))
    return total


def attacks(words=(), folder="build", env=None):
    """The rows of tests/attacks, which have the machine to themselves."""
    with Stage("attacks"):
        return counted(ROOT / "build" / "attacks.xml", ["-rx", ATTACKS, *words], ATTACKS,
                       {"SHUNT_BUILD": str(ROOT / folder), **(env or {})}, ATTACKS_TIMEOUT_S)


def short_attacks(only):
    """Some of the short forms, which take two minutes."""
    if not build("build"):
        return Counts(failed=1)
    return attacks(["-m", "ci", *(["-k", only[0]] if only else [])])


def long_attacks(only):
    if not build("build"):
        return Counts(failed=1)
    return attacks(["--long", *(["-k", only[0]] if only else [])])


def sanitized_attacks(only):
    """The short forms, with a daemon under AddressSanitizer and UndefinedBehaviorSanitizer."""
    if not build("build-asan-eal", targets=STARTED):
        return Counts(failed=1)
    return attacks(["-k", only[0]] if only else [], "build-asan-eal", SANITIZER_OPTIONS)


def integ(only):
    if not only:
        return integ_files(files())
    if not build("build"):
        return Counts(failed=1)
    return pytest(ROOT / "build" / "integ.xml", [*files(), "-k", only[0]], at_once=2)


def pci(only):
    if not build("build"):
        return Counts(failed=1)
    with Stage("tests with emulated cards"):
        return counted(ROOT / "build" / "pci.xml", ["-rs", "-s", *PCI_TESTS, *(["-k", only[0]] if only else [])],
                       TESTS, {}, PCI_TIMEOUT_S)


def fleet(only):
    """The whole of files of which the integration tests have the short forms."""
    if not build("build"):
        return Counts(failed=1)
    with Stage("tests with routers"):
        return counted(ROOT / "build" / "fleet.xml", ["-rs", "--fleet", "-s", *FLEET_TESTS,
                                                      *(["-k", only[0]] if only else [])], TESTS, {}, FLEET_TIMEOUT_S)


def mesh(only):
    """A real control plane, and gRPC's own test programs."""
    if not build("build"):
        return Counts(failed=1)
    with Stage("tests with istiod, gRPC's test programs and a collector"):
        return counted(ROOT / "build" / "mesh.xml", ["-rs", *MESH_TESTS, *(["-k", only[0]] if only else [])], TESTS,
                       {}, MESH_TIMEOUT_S)


def alerts(only):
    """The whole of a file of which the integration tests have the short form."""
    if not build("build"):
        return Counts(failed=1)
    with Stage("alerts"):
        return pytest(ROOT / "build" / "alerts.xml", ["--alerts", "-s", ALERTS_TEST,
                                                        *(["-k", only[0]] if only else [])])
