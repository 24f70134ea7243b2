# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a fresh world for each test, and what every test asserts at its end.

Whatever a test did, the daemon must still run and leave with status 0 when asked to; a test that ends
it on purpose marks itself with ends_daemon.
"""

import os

import pytest

from lab import Lab
from world import World

LABEL = "shunt-test"
LOG_TAIL = 3000
EXIT_TIMEOUT_S = 10


def pytest_configure(config):
    config.addinivalue_line("markers", "ends_daemon: the test itself ends shuntd")
    if os.geteuid() != 0:
        pytest.exit("the integration tests make network namespaces: run them as root", 2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    item.stash[_REPORTS] = report = outcome.get_result()
    lab = item.stash.get(_LAB, None)
    if report.failed and lab:
        for process in lab.processes:
            report.sections.append((process.name, process.output()[-LOG_TAIL:]))


_LAB = pytest.StashKey()
_REPORTS = pytest.StashKey()


@pytest.fixture(name="lab")
def fixture_lab(request):
    with Lab(LABEL) as lab:
        request.node.stash[_LAB] = lab
        yield lab


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
        daemon = world.bed.daemon
        if daemon:
            assert daemon.alive(), f"shuntd ended by itself: {daemon.output()[-LOG_TAIL:]}"
            assert daemon.stop(EXIT_TIMEOUT_S) == 0, daemon.output()[-LOG_TAIL:]


@pytest.fixture(name="world")
def fixture_world(make_world):
    """The standard world, started."""
    return make_world().start()
