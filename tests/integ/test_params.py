# SPDX-License-Identifier: Apache-2.0
"""Dynamic parameters (xRFC TP2): one daemon among others of a server whose resources have variants."""

import json

import pytest

from lab import wait_until
from resources import both, has, lacks, variant
from test_xds import resource_state, wait_for_split
from testbed import EXAMPLE
from world import ROUTES, split_of

PROD, V1 = has("env", "prod"), has("version", "v1")


@pytest.fixture(name="world", params=["sotw", "delta"])
def fixture_world(make_world, request, lab):
    """The standard world, for a daemon of env=prod and version=v1."""
    world = make_world()
    world.set_routes(variant(world.routes(100, 0), PROD),
                     variant(world.routes(0, 100), lacks("env", "prod")))
    bootstrap = json.loads((EXAMPLE / "bootstrap.json").read_text())
    bootstrap["dynamic_parameters"] = {"env": "prod", "version": "v1"}
    path = lab.dir / "bootstrap.json"
    path.write_text(json.dumps(bootstrap))
    world.bed.settings = f"xds: {{protocol: {request.param}}}\n"
    world.bed.start_xds()
    world.bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})
    return world


def test_variant_that_is_split_in_two_under_load_fails_nothing(world):
    bed = world.bed
    report = bed.run_h2load(requests=1000)
    assert report.perfect and split_of(report)[1] == 0, report
    load = bed.start_h2load("load", requests=16_000, clients=8, streams=8, rate=500)
    world.set_routes(variant(world.routes(0, 100), both(PROD, V1)),
                     variant(world.routes(100, 0), both(PROD, lacks("version", "v1"))),
                     variant(world.routes(100, 0), lacks("env", "prod")))
    wait_for_split(bed, 0)
    report = bed.h2load_report(load)
    assert report.perfect, report
    assert resource_state(bed, ROUTES)["state"] == "ACKED"
    assert bed.show("xds")["server"]["nacks"] == 0


@pytest.mark.parametrize("world", ["delta"], indirect=True)  # SotW says nothing of absent routes
def test_removal_of_the_only_match_is_told(world):
    bed = world.bed
    world.folder.remove(variant(world.routes(100, 0), PROD))
    wait_until(lambda: resource_state(bed, ROUTES)["state"] == "DOES_NOT_EXIST", 10, "removal")
    report = bed.run_h2load(requests=1000)
    assert report.perfect, report
    world.folder.put(variant(world.routes(0, 100), both(PROD, V1)))
    wait_for_split(bed, 0)
