# SPDX-License-Identifier: Apache-2.0
"""Plain HTTP/2 through the balancer."""

from testbed import free_of_addresses
from world import split_of


def test_a_million_requests_split_by_weight_from_the_first_on(make_world):
    world = make_world().start()
    report = world.bed.run_h2load(requests=1_000_000, clients=64, streams=32)
    assert report.perfect, report
    blue, green = split_of(report)
    assert blue + green == 1_000_000
    assert abs(blue / 1_000_000 - 0.75) < 0.01, (blue, green)


def test_it_is_shuntd_that_answers(world, lab):
    assert free_of_addresses(lab, "lb-c") and free_of_addresses(lab, "lb-b")
    assert world.bed.run_h2load(requests=1000).perfect


def test_weight_zero_gets_nothing(make_world):
    world = make_world()
    world.set_weights(100, 0)
    report = world.start().bed.run_h2load(requests=20_000)
    assert report.perfect, report
    assert split_of(report) == (20_000, 0)


def test_many_short_connections(world):
    """One request per connection: connections come and go without a loss."""
    for _ in range(5):
        report = world.bed.run_h2load(requests=400, clients=400, streams=1)
        assert report.perfect, report
