# SPDX-License-Identifier: Apache-2.0
"""Fixtures for whatever makes a Lab (a plugin of each conftest.py): the lab, its logs where a test fails, and what is
asserted of every daemon at its end: it still runs, has given every request exactly one ending, holds no client and no
request any more, and leaves with status 0 when asked to."""

import contextlib
import os
import subprocess

import pytest

from lab import Lab, leftovers, wait_until
from testbed import EXIT_TIMEOUT_S

LABEL = "shunt-test"
LOG_TAIL = 3000
REST_TIMEOUT_S = 30


def pytest_configure():
    if os.geteuid() != 0:
        pytest.exit("the integration tests make network namespaces: run them as root", 2)


_LAB = pytest.StashKey()
_LOGS = pytest.StashKey()


def log_tails(lab):
    """Of the lab's processes, and of those in its virtual machines."""
    return [(path.stem, path.read_text(errors="replace")[-LOG_TAIL:])
            for path in sorted(lab.dir.glob("*.log"))]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.failed and _LAB in item.stash:
        # After the teardown the files are gone.
        report.sections += item.stash.get(_LOGS, None) or log_tails(item.stash[_LAB])


@pytest.fixture(scope="session", autouse=True)
def fixture_nothing_is_left():
    """No namespace, run directory or process of this session outlives it."""
    yield
    mine = f"{LABEL}-{os.getpid()}"
    processes = subprocess.run(["pgrep", "-a", "-f", f"/run/shunt-lab/{mine}"], timeout=60,
                               capture_output=True, text=True, check=False).stdout
    assert leftovers(mine) == [] and processes == ""


@pytest.fixture(name="lab")
def fixture_lab(request):
    with Lab(LABEL) as lab:
        request.node.stash[_LAB] = lab
        yield lab
        request.node.stash[_LOGS] = log_tails(lab)


@pytest.fixture(name="module_lab", scope="module")
def fixture_module_lab(request):
    """One lab for all the tests of a module, for worlds that no test changes for good."""
    with module_lab_of(request) as lab:
        yield lab


@contextlib.contextmanager
def module_lab_of(request):
    """The same, for a fixture that makes several, one after the other."""
    with Lab(LABEL) as lab:
        items = [item for item in request.session.items if item.module is request.module]
        for item in items:
            item.stash[_LAB], item.stash[_LOGS] = lab, None
        try:
            yield lab
        finally:
            for item in items:
                item.stash[_LOGS] = log_tails(lab)


def check_end(bed):
    assert bed.daemon.alive(), f"shuntd ended by itself: {bed.daemon.output()[-LOG_TAIL:]}"
    wait_until(lambda: all(map(is_at_rest, bed.show_workers())), REST_TIMEOUT_S,
               "every request ended and every client gone")
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0, bed.daemon.output()[-LOG_TAIL:]


def is_at_rest(worker):
    return (sum(worker["ended"].values()) == worker["requests"] and
            worker["proxy"]["requests"] == worker["proxy"]["clients"] == 0)
