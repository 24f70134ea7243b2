# SPDX-License-Identifier: Apache-2.0
"""Dynamic parameters (xRFC TP2): one daemon among others of a server whose resources have variants."""

import json

import pytest

import resources
from lab import wait_until
from lab_fixtures import check_end
from resources import both, has, lacks, variant
from test_xds import resource_state, wait_for_split
from testbed import EXAMPLE, Testbed
from world import ROUTES, split_of

PROD, V1 = has("env", "prod"), has("version", "v1")
NOT_PROD, NOT_V1 = lacks("env", "prod"), lacks("version", "v1")
PROTOCOLS = pytest.mark.parametrize("protocol", ["sotw", "delta"])


def start_daemon(bed, protocol, **parameters):
    """A daemon of these parameters."""
    bootstrap = json.loads((EXAMPLE / "bootstrap.json").read_text())
    bootstrap["dynamic_parameters"] = parameters
    path = bed.lab.dir / "bootstrap.json"
    path.write_text(json.dumps(bootstrap))
    bed.settings = f"xds: {{protocol: {protocol}}}\n"
    bed.start_daemon(env={"GRPC_XDS_BOOTSTRAP": str(path)})


@pytest.fixture(name="world", params=["sotw", "delta"])
def fixture_world(make_world, request):
    """The standard world, for a daemon of env=prod and version=v1."""
    world = make_world()
    world.set_routes(variant(world.routes(100, 0), PROD), variant(world.routes(0, 100), NOT_PROD))
    world.bed.start_xds()
    start_daemon(world.bed, request.param, env="prod", version="v1")
    return world


def test_variant_that_is_split_in_two_under_load_fails_nothing(world):
    bed = world.bed
    report = bed.run_h2load(requests=1000)
    assert report.perfect and split_of(report)[1] == 0, report
    load = bed.start_h2load("load", requests=16_000, clients=8, streams=8, rate=500)
    world.set_routes(variant(world.routes(0, 100), both(PROD, V1)),
                     variant(world.routes(100, 0), both(PROD, NOT_V1)),
                     variant(world.routes(100, 0), NOT_PROD))
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


# The four variants of the specification's example: (a backend of its own each, size of its answers,
# for whom).
VARIANTS = {"neither": (600, both(NOT_PROD, NOT_V1)), "prod": (700, both(PROD, NOT_V1)),
            "v1": (800, both(NOT_PROD, V1)), "prod-v1": (900, both(PROD, V1))}
EXPECTED = {
    ("prod", "v1"): "prod-v1", ("prod", "v2"): "prod", ("prod", "v3"): "prod",
    ("canary", "v1"): "v1", ("canary", "v2"): "neither", ("canary", "v3"): "neither",
    ("test", "v1"): "v1", ("test", "v2"): "neither", ("test", "v3"): "neither",
}
N_ASKED = 50


def four_variants(bed):
    """The backends run, and the resources are written."""
    served = [resources.listener("web", ROUTES)]
    for number, (name, (size, constraints)) in enumerate(VARIANTS.items(), 1):
        ip = f"10.82.1.{number}"
        bed.add_backend_address(ip)
        backend = bed.start_http_backend(name, ip, size)
        bed.wait_connect("backends", ip, 8080, backend)
        host = resources.virtual_host("all", ["*"], resources.route("/", name))
        served += [resources.cluster(name), resources.endpoints(name, (ip, 8080)),
                   variant(resources.route_config(ROUTES, host), constraints)]
    resources.Folder(bed.xds_folder).set(*served)


@PROTOCOLS
def test_nine_pairs_of_parameters_are_routed_by_four_variants(lab, protocol):
    """TP2-C11, from the bootstrap to the backend."""
    bed = Testbed(lab)
    four_variants(bed)
    bed.start_xds()
    for (env, version), name in EXPECTED.items():
        start_daemon(bed, protocol, env=env, version=version, zone="unconstrained")
        report = bed.run_h2load(requests=N_ASKED, clients=2)
        assert report.perfect, report
        assert report.payload == N_ASKED * VARIANTS[name][0], (env, version, name, report)
        assert resource_state(bed, ROUTES)["state"] == "ACKED"
        check_end(bed)
