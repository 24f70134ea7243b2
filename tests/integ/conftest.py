# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a fresh world for each test, and what every test asserts at its end.

Whatever a test did, the daemon must still run, have given every request exactly one ending, hold no
client and no request any more, and leave with status 0 when asked to. A test that ends it on
purpose marks itself with ends_daemon.
"""

import contextlib
import os
import subprocess

import pytest

from lab import Lab, leftovers, wait_until
from testbed import EXIT_TIMEOUT_S
from world import World

LABEL = "shunt-test"
LOG_TAIL = 3000
REST_TIMEOUT_S = 5


def pytest_configure(config):
    config.addinivalue_line("markers", "ends_daemon: the test itself ends shuntd")
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
    processes = subprocess.run(["pgrep", "-a", "-f", f"/run/shunt-lab/{mine}"], timeout=10,
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


@pytest.fixture(name="make_world")
def fixture_make_world(lab, request):
    """World(...) by its arguments; at the end its daemon must leave in order."""
    worlds = []

    def make(**arguments):
        worlds.append(World(lab, **arguments))
        return worlds[-1]
    yield make
    if request.node.get_closest_marker("ends_daemon"):
        return
    for world in worlds:
        if world.bed.daemon:
            check_end(world.bed)


def check_end(bed):
    assert bed.daemon.alive(), f"shuntd ended by itself: {bed.daemon.output()[-LOG_TAIL:]}"
    wait_until(lambda: all(map(is_at_rest, bed.show_workers())), REST_TIMEOUT_S,
               "every request ended and every client gone")
    assert bed.daemon.stop(EXIT_TIMEOUT_S) == 0, bed.daemon.output()[-LOG_TAIL:]


def is_at_rest(worker):
    return (sum(worker["ended"].values()) == worker["requests"] and
            worker["proxy"]["requests"] == worker["proxy"]["clients"] == 0)


@pytest.fixture(name="world")
def fixture_world(make_world):
    """The standard world, started."""
    return make_world().start()
