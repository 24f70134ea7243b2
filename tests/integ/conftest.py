# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a fresh world for each test; its daemon's end is checked (lab_fixtures.check_end) unless a test that ends
it on purpose marks itself with ends_daemon."""

import pytest

pytest.register_assert_rewrite("lab_fixtures")
from lab_fixtures import check_end
from world import World

pytest_plugins = ["lab_fixtures"]


def pytest_addoption(parser):
    parser.addoption("--fleet", action="store_true", help="the whole of test_fleet*.py")
    parser.addoption("--alerts", action="store_true", help="the whole of test_alerts.py")


def pytest_configure(config):
    config.addinivalue_line("markers", "ends_daemon: the test itself ends shuntd")


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


@pytest.fixture(name="world")
def fixture_world(make_world):
    """The standard world, started."""
    return make_world().start()
